/** Composes the central API and the validator of a local marketplace in one process; they communicate over loopback. */
import { hostAndPort, type ListenAddress, listenOn } from '#shared/http/listen.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { CertificateSource } from '#shared/tls/listener-certificate.ts';
import type { Pin } from '#shared/tls/peer.ts';
import { servesTls } from '#shared/tls/tls-mode.ts';
import { createSecureTransport, PLAIN_TRANSPORT, type Transport } from '#shared/tls/transport.ts';
import type { Validator } from '../app.ts';
import type { Central } from '../central/app.ts';
import { auditInThread } from '../central/money/ledger/ledger-audit.ts';
import type { CentralPorts } from '../central/platform/central-deps.ts';
import {
  type CentralPlace,
  databaseBackupsIn,
  databaseLimitsIn,
} from '../central/platform/central-home.ts';
import { openCentralDatabase } from '../central/platform/database/database.ts';
import { openNotifier } from '../central/platform/database/notifier.ts';
import { requireOwnHotkey } from '../central/platform/database/own-keys.ts';
import {
  createCentralMetrics,
  listenForScrapes,
} from '../central/platform/metrics/central-metrics.ts';
import {
  type DatabaseHealth,
  openWatchedDatabase,
  type WatchedDatabase,
} from '../database/database-watch.ts';
import { gatewayCertificatesIn } from '../gateway/gateway-certificate.ts';
import { openEvidenceStore } from '../store/evidence-store.ts';
import type { EvidenceStore } from '../store/tables.ts';
import { databaseVariable } from './central-settings.ts';
import { createLocalCentral, type LocalCentralOptions } from './local-central.ts';
import { createLocalValidator, type LocalValidatorOptions } from './local-validator.ts';
import { chooseMetricsAddresses, type MetricsAddresses } from './metrics-listeners.ts';
import type { StartOptions } from './options.ts';

export type Services = {
  central: Central;
  /** Addresses of the metrics of both services, and addresses for the agents' metrics. */
  metrics: MetricsAddresses;
  /** Pin of the gateway's certificate; null if the gateway serves plain HTTP. */
  gatewayPin: Pin | null;
  /** Closes each service after the service that calls it. */
  close(): Promise<void>;
};

export type ServicesOptions = LocalCentralOptions &
  Pick<LocalValidatorOptions, 'signaturesWaiting'> & {
    options: StartOptions;
    /** `postgres://…` or a SQLite file. */
    database: string;
  };

/** Scheme of the gateway: TLS on addresses that other machines can reach. */
function schemeOf({ host }: Pick<StartOptions, 'host'>): 'http' | 'https' {
  return servesTls('auto', host) ? 'https' : 'http';
}

/** Base URLs of the services. */
export function urlsOf(options: StartOptions) {
  const origin = `http://${hostAndPort(options.host, options.port)}`;
  return {
    api: `${origin}/api`,
    portal: `${origin}/portal`,
    validator: `${schemeOf(options)}://${hostAndPort(options.host, options['validator-port'])}`,
  };
}

/** Resolves when both services run. Closes everything again if the start fails. */
export async function startServices(parts: ServicesOptions): Promise<Services> {
  const { validatorStore } = parts.home;
  const place = placeOf(parts);
  const watching = {
    isNew: parts.options.fresh,
    plan: databaseBackupsIn(parts.environment),
    clock: parts.clock,
    log: parts.log,
  };
  const database = await openWatchedDatabase(
    { ...watching, location: { ...place, kind: 'central' } },
    (damage) =>
      openCentralDatabase(place.address, place.variable, { damage, limits: place.limits }),
  );
  const notifier = openNotifier({ target: place.address, clock: parts.clock, log: parts.log });
  let evidence: WatchedDatabase<EvidenceStore> | null = null;
  const closeStorage = async () => {
    await notifier.close();
    await database.close();
    await evidence?.close();
  };
  try {
    await requireOwnHotkey(database.db, parts.signers.central.hotkey, {
      isNew: parts.options.fresh,
    });
    const location = { address: validatorStore, variable: '--home', kind: 'evidence' } as const;
    evidence = await openWatchedDatabase({ ...watching, location }, (damage) =>
      openEvidenceStore(validatorStore, '--home', { damage }),
    );
    const services = await startOn(
      {
        db: database.db,
        databaseHealth: database.health,
        notifier,
        auditLedger: (signal) => auditInThread(place, signal),
        store: evidence.db,
        storeHealth: evidence.health,
      },
      parts,
    );
    return {
      central: services.central,
      metrics: services.metrics,
      gatewayPin: services.gatewayPin,
      async close() {
        await services.close();
        await closeStorage();
      },
    };
  } catch (error) {
    await closeStorage();
    throw error;
  }
}

/** Place of the central API's database, the option or variable that names it, and the limits of its connections. */
function placeOf({ database, home, environment }: ServicesOptions): CentralPlace {
  const variable = databaseVariable(database, home);
  return { address: database, variable, limits: databaseLimitsIn(environment) };
}

type Storage = Required<
  Pick<CentralPorts, 'db' | 'databaseHealth' | 'notifier' | 'auditLedger'>
> & {
  store: EvidenceStore;
  storeHealth: DatabaseHealth;
};

/** Starts the central API first: the validator's first pass reads its list of executors. */
async function startOn(storage: Storage, parts: ServicesOptions): Promise<Services> {
  const { options } = parts;
  const urls = urlsOf(options);
  const certificates =
    schemeOf(options) === 'https' ? gatewayCertificatesIn(parts.home.validator) : null;
  const transport = transportTo(certificates, parts.clock);
  const metrics = createCentralMetrics(parts.clock);
  const gateway = { gatewayUrl: urls.validator, transport };
  const central = await createLocalCentral(parts, { ...storage, metrics }, gateway);
  const validator = createLocalValidator({
    ...parts,
    store: storage.store,
    storeHealth: storage.storeHealth,
    centralUrl: urls.api,
    probeAccountsFile: parts.home.probeAccountsFile,
    certificates,
  });
  const close = async () => {
    await central.close();
    await validator.close();
  };
  try {
    await central.server.listen({ host: options.host, port: options.port });
    await validator.server.listen({ host: options.host, port: options['validator-port'] });
    const addresses = await chooseMetricsAddresses(options, parts.environment);
    const monitoring = await listenForScrapes(addresses.central, {
      ...parts,
      metrics,
      readiness: central.readiness,
    });
    await listenForValidatorScrapes(validator, addresses.validator);
    central.start();
    validator.start();
    parts.guard.start();
    return {
      central,
      metrics: addresses,
      gatewayPin: certificates?.().pin ?? null,
      async close() {
        await monitoring?.close();
        await close();
      },
    };
  } catch (error) {
    // An open listener would keep the process alive.
    await close();
    throw error;
  }
}

async function listenForValidatorScrapes(
  { monitoring }: Validator,
  address: ListenAddress,
): Promise<void> {
  if (monitoring === null) return;
  await listenOn(monitoring, address, { host: '--metrics-port', port: '--metrics-port' });
}

/** Trusts the gateway's certificate by its pin. */
function transportTo(certificates: CertificateSource | null, clock: Clock): Transport {
  if (certificates === null) return PLAIN_TRANSPORT;
  return createSecureTransport({ trust: certificates().pin, clock });
}
