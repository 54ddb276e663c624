/** Runs a standalone central API. Commands that only check the configuration do not load this module. */
import { join } from 'node:path';
import { usdToMicro } from '#shared/api/money.ts';
import { listenOn } from '#shared/http/listen.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { openGuardedClock } from '#shared/runtime/clock-file.ts';
import { type Environment, inspectConfig, logConfigWarnings } from '#shared/runtime/config.ts';
import { requireWritableFolder } from '#shared/runtime/files.ts';
import type { GuardedClock } from '#shared/runtime/guarded-clock.ts';
import { createLog, type Log } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { createServiceManager } from '#shared/runtime/service-manager.ts';
import type { Signer } from '#shared/signing/sr25519.ts';
import { startTracing } from '#shared/telemetry/tracing.ts';

import { isLoopback } from '#shared/tls/tls-mode.ts';
import { openWatchedDatabase } from '../database/database-watch.ts';
import { lockHome, requireKeyFile } from '../database/open-database.ts';
import { observeHotkey } from '../doctor/observed-hotkey.ts';
import { createKeyThread } from '../keys/key-thread.ts';
import { type Adapters, createAdapters } from './adapters-from-config.ts';
import { createCentral } from './app.ts';
import {
  CENTRAL_CONFIG,
  type CentralConfig,
  centralSecretFile,
  centralSeedFile,
} from './config.ts';
import { auditInThread } from './money/ledger/ledger-audit.ts';
import { createGatewayAgents } from './platform/adapters/gateway-agents.ts';
import { gatewayTransport } from './platform/adapters/gateway-transport.ts';
import type { CentralOptions } from './platform/central-deps.ts';
import {
  centralDatabaseOf,
  centralSecret,
  databaseBackupsOf,
  databaseLimitsOf,
} from './platform/central-home.ts';
import { CONSOLE_FOLDER } from './platform/console/console-files.ts';
import { openCentralDatabase } from './platform/database/database.ts';
import { openNotifier } from './platform/database/notifier.ts';
import { requireOwnHotkey, requireRecordedKeys } from './platform/database/own-keys.ts';
import { corsOriginsFrom } from './platform/edge/cors.ts';
import { createCentralMetrics, listenForScrapes } from './platform/metrics/central-metrics.ts';
import { rateLimitsFrom } from './platform/rate-limits/policies.ts';

/**
 * Time without a poll of the pod sync after which the liveness probe fails. The sync polls several times per second
 * while the database answers.
 */
const MAX_POLL_AGE_MS = 60_000;
/** Time limit of the request to the gateway at the start. */
const GATEWAY_MS = 5_000;

/**
 * Resolves when the API serves requests. `stopOnSignal` receives the function that stops it. Removes systemd's
 * variables from `environment`. `isNew` accepts a missing database in a place that had one.
 */
export async function serve(
  config: CentralConfig,
  environment: Environment,
  stopOnSignal: (stop: () => Promise<void>) => void,
  { isNew }: { isNew: boolean },
): Promise<void> {
  const log = createLog({ name: 'central', level: config.CENTRAL_LOG_LEVEL });
  logConfigWarnings(inspectConfig(CENTRAL_CONFIG, environment).warnings, log);
  const tracing = await startTracing('podwright-central', environment, { clock: systemClock, log });
  const serviceManager = createServiceManager({
    environment,
    pid: process.pid,
    runCommand,
    clock: systemClock,
    log,
  });
  const inHome = (name: string) => join(config.CENTRAL_HOME, name);
  requireWritableFolder(config.CENTRAL_HOME, 'CENTRAL_HOME');
  const guard = openGuardedClock(config.CENTRAL_HOME, {
    clock: systemClock,
    random: systemRandom,
    log,
  });
  const { clock } = guard;
  const target = centralDatabaseOf(config);
  const variable = 'CENTRAL_DATABASE';
  const limits = databaseLimitsOf(config);
  const homeLock = lockHome(
    { address: inHome('central.db'), variable: 'CENTRAL_HOME', kind: 'central' },
    target,
  );
  const keyFiles = { seed: centralSeedFile(config), secret: centralSecretFile(config) };
  for (const file of Object.values(keyFiles)) {
    requireKeyFile(file, { address: target, variable }, { isNew });
  }
  await requireRecordedKeys({ address: target, variable, limits }, keyFiles, { isNew });
  const signer = await createKeyThread().open({ kind: 'seed', path: keyFiles.seed });
  const secret = centralSecret(keyFiles.secret, systemRandom);
  const adapters = createAdapters(config, {
    clock,
    log,
    objectFolder: inHome('objects'),
    backupFolder: inHome('backups'),
  });
  const database = await openWatchedDatabase(
    {
      location: { address: target, variable, kind: 'central' },
      isNew,
      plan: databaseBackupsOf(config),
      clock,
      log,
    },
    (damage) => openCentralDatabase(target, variable, { damage, limits }),
  );
  const { db, health: databaseHealth } = database;
  const notifier = openNotifier({ target, clock, log });
  const closeStorage = async () => {
    await notifier.close();
    await database.close();
    homeLock.close();
  };
  try {
    await requireOwnHotkey(db, signer.hotkey, { isNew });
    const metrics = createCentralMetrics(clock);
    const central = await createCentral(
      {
        metrics,
        db,
        databaseHealth,
        notifier,
        auditLedger: (signal) => auditInThread({ address: target, variable, limits }, signal),
        log,
        clock,
        guard,
        random: systemRandom,
        ...adapters.ports,
        secret,
        agents: agentsBehind(config, { signer, guard }),
      },
      optionsOf(config, adapters),
    );
    const place = { host: config.CENTRAL_HOST, port: config.CENTRAL_PORT };
    await listenOn(central.server, place, { host: 'CENTRAL_HOST', port: 'CENTRAL_PORT' });
    const monitoring = await listenForScrapes(config.CENTRAL_METRICS_LISTEN, {
      metrics,
      log,
      clock,
      random: systemRandom,
      readiness: central.readiness,
    });
    central.start();
    guard.start();
    stopOnSignal(async () => {
      await serviceManager.stopping();
      central.drain();
      await systemClock.sleep(config.CENTRAL_DRAIN_SECONDS * 1_000);
      await Promise.all([central.close(), monitoring?.close()]);
      await guard.stop();
      await tracing.close();
      await closeStorage();
    });
    log.info({ ...place, hotkey: signer.hotkey }, 'central API ready');
    void warnOfGateway(config, log);
    await serviceManager.ready({
      check: async () => central.vitals(),
      limits: { maxHeartbeatAgeMs: MAX_POLL_AGE_MS },
    });
  } catch (error) {
    await closeStorage();
    throw error;
  }
}

/** Requests the gateway's hotkey once, and logs why the gateway does not answer. Never rejects. */
async function warnOfGateway(config: CentralConfig, log: Log): Promise<void> {
  const observed = await observeHotkey({
    clock: systemClock,
    baseUrl: config.CENTRAL_GATEWAY_URL.replace(/\/+$/, ''),
    transport: gatewayTransport(config, systemClock),
    timeoutMs: GATEWAY_MS,
  });
  if ('problem' in observed) {
    log.warn({ cause: observed.problem }, 'gateway of CENTRAL_GATEWAY_URL does not answer');
  }
}

function agentsBehind(
  config: CentralConfig,
  { signer, guard }: { signer: Signer; guard: GuardedClock },
) {
  return createGatewayAgents({
    gatewayUrl: config.CENTRAL_GATEWAY_URL.replace(/\/+$/, ''),
    gatewayHotkey: config.CENTRAL_GATEWAY_HOTKEY,
    signer,
    clock: guard.clock,
    random: systemRandom,
    onPeerTime: guard.heardFrom,
    transport: gatewayTransport(config, guard.clock),
  });
}

function optionsOf(config: CentralConfig, adapters: Adapters): CentralOptions {
  return {
    validators: config.CENTRAL_VALIDATORS ?? [config.CENTRAL_GATEWAY_HOTKEY],
    signupCreditUusd: usdToMicro(config.CENTRAL_SIGNUP_CREDIT_USD),
    verifyEmailAtSignup: !config.CENTRAL_VERIFY_EMAIL,
    ...adapters.options,
    allowsLoopback: isLoopback(config.CENTRAL_HOST),
    rateLimits: rateLimitsFrom(config),
    corsOrigins: corsOriginsFrom(config),
    consoleFolder: CONSOLE_FOLDER,
  };
}
