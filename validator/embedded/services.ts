/** The central API and the validator of a local marketplace: one process, talking over loopback all the same. */
import { hostAndPort } from '#shared/http/listen.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { parseConfig } from '#shared/runtime/config.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Signer } from '#shared/signing/sr25519.ts';
import type { CertificateSource } from '#shared/tls/listener-certificate.ts';
import { servesTls } from '#shared/tls/tls-mode.ts';
import { createSecureTransport, PLAIN_TRANSPORT, type Transport } from '#shared/tls/transport.ts';
import { createValidator } from '../app.ts';
import type { Surroundings } from '../central/adapters-from-config.ts';
import { type Central, createCentral } from '../central/app.ts';
import { MetricsVariable } from '../central/config.ts';
import { createGatewayAgents } from '../central/platform/adapters/gateway-agents.ts';
import type { CentralPorts } from '../central/platform/central-deps.ts';
import { centralSecret } from '../central/platform/central-home.ts';
import { openCentralDatabase } from '../central/platform/database/database.ts';
import { openNotifier } from '../central/platform/database/notifier.ts';
import {
  createCentralMetrics,
  listenForScrapes,
} from '../central/platform/metrics/central-metrics.ts';
import { type CheckPolicy, readCheckPolicy } from '../checks/check-policy.ts';
import { lockDatabaseFile } from '../database/open-database.ts';
import { gatewayCertificatesIn } from '../gateway/gateway-certificate.ts';
import { SMALL_LINE } from '../inspection/lines/measure-line.ts';
import { SMALL_PROOF } from '../inspection/proof/host-proof.ts';
import { openEvidenceStore } from '../store/evidence-store.ts';
import type { EvidenceStore } from '../store/tables.ts';
import { localMetagraph } from '../weights/metagraph.ts';
import {
  DEFAULT_POLICY_FILE,
  readWeightPolicy,
  type WeightPolicy,
} from '../weights/weight-policy.ts';
import { centralOptionsFrom } from './central-settings.ts';
import type { Home } from './home.ts';
import type { StartOptions } from './options.ts';

export type Services = {
  central: Central;
  /** Ends both, in the direction of the requests, so that each closes with nobody left to call it. */
  close(): Promise<void>;
};

export type ServicesOptions = {
  options: StartOptions;
  home: Home;
  /** `postgres://…` or a SQLite file. */
  database: string;
  clock: Clock;
  random: Random;
  log: Log;
  signers: { central: Signer; validator: Signer };
  /** Asked of the thread with their keys. */
  signaturesWaiting(): number;
  surroundings: Surroundings;
  /** Our own environment: CENTRAL_* variables. */
  environment: Record<string, string | undefined>;
};

const DEMO_BALANCE_UUSD = 1_000_000_000;
const CHECK_INTERVAL_MS = 60_000;
const LIST_INTERVAL_MS = 1_000;
/** Weights are to be seen soon after a start. */
const EPOCH_MS = 120_000;
/** On a machine that serves other ends, too, and may have no way to the internet. */
const LOCAL_CHECKS: Partial<CheckPolicy> = {
  ...{ min_free_disk_gib: 0, egress_image: null, template_images: [] },
  // Its own memory is the line: how fast that is depends on what else it does.
  ...{ min_bandwidth_mbit: 0, bandwidth_floor_mbit: 0 },
};
const LOCAL_WEIGHTS: Partial<WeightPolicy> = { min_bandwidth_mbit: 0 };
const EVIDENCE_KEPT_DAYS = 2;

/** Of gateway and agents, which serve TLS where others can reach them. */
export function schemeOf({ host }: Pick<StartOptions, 'host'>): 'http' | 'https' {
  return servesTls('auto', host) ? 'https' : 'http';
}

/** Base addresses of what `npm start` serves. */
export function urlsOf(options: StartOptions) {
  const origin = `http://${hostAndPort(options.host, options.port)}`;
  return {
    api: `${origin}/api`,
    portal: `${origin}/portal`,
    validator: `${schemeOf(options)}://${hostAndPort(options.host, options['validator-port'])}`,
  };
}

/** Both listen and work when this resolves; what was opened is closed again when anything fails. */
export async function startServices(parts: ServicesOptions): Promise<Services> {
  const { centralDatabase, validatorStore } = parts.home;
  const variable = parts.database === centralDatabase ? '--home' : 'CENTRAL_DATABASE';
  const alone = [
    await lockDatabaseFile({ address: parts.database, variable, kind: 'central' }),
    await lockDatabaseFile({ address: validatorStore, variable: '--home', kind: 'evidence' }),
  ];
  const db = await openCentralDatabase(parts.database, variable);
  const notifier = openNotifier({
    target: parts.database,
    clock: parts.clock,
    log: parts.log,
  });
  let store: EvidenceStore | null = null;
  const closeStorage = async () => {
    await notifier.close();
    await db.destroy();
    await store?.destroy();
    for (const each of alone) each.close();
  };
  try {
    store = await openEvidenceStore(validatorStore, '--home');
    const services = await startOn({ db, notifier, store }, parts);
    return {
      central: services.central,
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

type Storage = Required<Pick<CentralPorts, 'db' | 'notifier'>> & { store: EvidenceStore };

/** Central first: the validator's first pass asks it for the executors. */
async function startOn(storage: Storage, parts: ServicesOptions): Promise<Services> {
  const { options, signers } = parts;
  const urls = urlsOf(options);
  const certificates =
    schemeOf(options) === 'https' ? gatewayCertificatesIn(parts.home.validator) : null;
  const transport = transportTo(certificates, parts.clock);
  const metrics = createCentralMetrics(parts.clock);
  const gateway = { gatewayUrl: urls.validator, transport };
  const central = await composeCentral(parts, { ...storage, metrics }, gateway);
  const validator = createValidator({
    clock: parts.clock,
    random: parts.random,
    log: parts.log.child({ part: 'validator' }),
    signer: signers.validator,
    signaturesWaiting: parts.signaturesWaiting,
    centralUrl: urls.api,
    centralHotkey: signers.central.hotkey,
    policy: { acceptSimulated: true, checks: { ...readCheckPolicy(), ...LOCAL_CHECKS } },
    proof: SMALL_PROOF,
    line: SMALL_LINE,
    store: storage.store,
    weightSettings: {
      policy: { ...readWeightPolicy(DEFAULT_POLICY_FILE), ...LOCAL_WEIGHTS },
      metagraph: localMetagraph(storage.store, signers.validator.hotkey),
      embedded: true,
      cycleMs: CHECK_INTERVAL_MS,
      epochMs: EPOCH_MS,
      retentionDays: EVIDENCE_KEPT_DAYS,
    },
    checkIntervalMs: CHECK_INTERVAL_MS,
    listIntervalMs: LIST_INTERVAL_MS,
    certificates,
  });
  const close = async () => {
    await central.close();
    await validator.close();
  };
  try {
    const spec = { schema: MetricsVariable, prefix: 'CENTRAL_' };
    const { CENTRAL_METRICS_LISTEN: address } = parseConfig(spec, parts.environment);
    await central.server.listen({ host: options.host, port: options.port });
    await validator.server.listen({ host: options.host, port: options['validator-port'] });
    const monitoring = await listenForScrapes(address, { ...parts, metrics });
    central.start();
    validator.start();
    return {
      central,
      async close() {
        await monitoring?.close();
        await close();
      },
    };
  } catch (error) {
    // A listener that is left open would keep the process, with nobody to end it.
    await close();
    throw error;
  }
}

/** By the pin of the gateway beside us: nobody else vouches for it. */
function transportTo(certificates: CertificateSource | null, clock: Clock): Transport {
  if (certificates === null) return PLAIN_TRANSPORT;
  return createSecureTransport({ trust: certificates().pin, clock });
}

function composeCentral(
  { home, clock, random, log, signers, surroundings, environment }: ServicesOptions,
  storage: Storage & Pick<CentralPorts, 'metrics'>,
  gateway: { gatewayUrl: string; transport: Transport },
): Promise<Central> {
  const secret = centralSecret(home.centralSecret, random);
  const agents = createGatewayAgents({
    ...gateway,
    gatewayHotkey: signers.validator.hotkey,
    signer: signers.central,
    clock,
    random,
  });
  const ports = {
    db: storage.db,
    notifier: storage.notifier,
    clock,
    random,
    log: log.child({ part: 'central' }),
    agents,
  };
  return createCentral(
    { ...ports, ...surroundings.ports, secret },
    {
      validators: [signers.validator.hotkey],
      signupCreditUusd: DEMO_BALANCE_UUSD,
      verifyEmailAtSignup: false,
      ...surroundings.options,
      ...centralOptionsFrom(environment),
    },
  );
}
