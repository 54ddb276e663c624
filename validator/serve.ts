/** Runs the validator process from reading its configuration to its shutdown. Other commands do not load this file. */
import { join } from 'node:path';
import { listenOn } from '#shared/http/listen.ts';
import { DeadlineError, systemClock, withDeadline } from '#shared/runtime/clock.ts';
import { openGuardedClock } from '#shared/runtime/clock-file.ts';
import { type Environment, inspectConfig, logConfigWarnings } from '#shared/runtime/config.ts';
import { requireWritableFolder } from '#shared/runtime/files.ts';
import { createLog, type Log } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { createServiceManager } from '#shared/runtime/service-manager.ts';
import { startTracing } from '#shared/telemetry/tracing.ts';
import { createValidator } from './app.ts';
import type { CheckPolicy } from './checks/check-policy.ts';
import {
  storeBackups,
  storeLimits,
  storeTarget,
  VALIDATOR_CONFIG,
  type ValidatorConfig,
} from './config.ts';
import { openWatchedDatabase } from './database/database-watch.ts';
import { lockHome, requireKeyFile } from './database/open-database.ts';
import { gatewayCertificates } from './gateway/gateway-certificate.ts';
import { FULL_LINE } from './inspection/lines/measure-line.ts';
import { FULL_PROOF } from './inspection/proof/host-proof.ts';
import { createKeyThread } from './keys/key-thread.ts';
import { ownKeyLocation } from './keys/own-key.ts';
import { trustedHotkeys } from './keys/trusted-hotkeys.ts';
import { probeAccountsIn } from './probes/probe-accounts.ts';
import { openEvidenceStore } from './store/evidence-store.ts';
import { type ReleaseSource, releaseLoginOf } from './updates/release.service.ts';
import type { WeightSettings } from './weights/weights.ts';

/** Maximum age of a heartbeat in milliseconds: the duration of a pass over many executors that do not answer. */
const HEARTBEAT_WITHIN_MS = 3_600_000;

/** Time limit of a shutdown. */
const STOPS_WITHIN_MS = 9_000;

/**
 * Resolves when the validator serves. Passes the shutdown function to `stopOnSignal`; removes systemd's variables from
 * `environment`.
 */
export async function serve(
  config: ValidatorConfig,
  {
    weightSettings,
    checks,
    isNew,
  }: {
    weightSettings: WeightSettings;
    checks: CheckPolicy;
    /** Accepts that the evidence store is missing although it existed before. */
    isNew: boolean;
  },
  environment: Environment,
  stopOnSignal: (stop: () => Promise<void>) => void,
): Promise<void> {
  const log: Log = createLog({ name: 'validator', level: config.VALIDATOR_LOG_LEVEL });
  logConfigWarnings(inspectConfig(VALIDATOR_CONFIG, environment).warnings, log);
  const tracing = await startTracing('podwright-validator', environment, {
    clock: systemClock,
    log,
  });
  const serviceManager = createServiceManager({
    environment,
    pid: process.pid,
    runCommand,
    clock: systemClock,
    log,
  });
  requireWritableFolder(config.VALIDATOR_HOME, 'VALIDATOR_HOME');
  const guard = openGuardedClock(config.VALIDATOR_HOME, {
    clock: systemClock,
    random: systemRandom,
    log,
  });
  const target = storeTarget(config);
  const variable = 'VALIDATOR_DATABASE';
  const homeLock = lockHome(
    {
      address: join(config.VALIDATOR_HOME, 'ledger.db'),
      variable: 'VALIDATOR_HOME',
      kind: 'evidence',
    },
    target,
  );
  const key = ownKeyLocation(config);
  requireKeyFile(key.path, { address: target, variable }, { isNew });
  const keys = createKeyThread();
  const signer = await keys.open(key);
  const database = await openWatchedDatabase(
    {
      location: { address: target, variable, kind: 'evidence' },
      isNew,
      plan: storeBackups(config),
      clock: guard.clock,
      log,
    },
    (damage) => openEvidenceStore(target, variable, { damage, limits: storeLimits(config) }),
  );
  const { db: store, health: storeHealth } = database;
  const validator = createValidator({
    clock: guard.clock,
    guard,
    random: systemRandom,
    log,
    signer,
    trusted: trustedHotkeys(signer.hotkey, config.VALIDATOR_KEY_SET),
    centralUrl: config.VALIDATOR_CENTRAL_URL.replace(/\/+$/, ''),
    centralHotkey: config.VALIDATOR_CENTRAL_HOTKEY,
    probes: {
      readAccounts: () => probeAccountsIn(config),
      usdPerDay: config.VALIDATOR_PROBE_USD_PER_DAY,
      socks: config.VALIDATOR_PROBE_SOCKS ?? null,
    },
    policy: { acceptSimulated: config.VALIDATOR_ACCEPT_SIMULATED, checks },
    proof: FULL_PROOF,
    line: FULL_LINE,
    coordinates: config.VALIDATOR_COORDINATES ?? null,
    store,
    storeHealth,
    weightSettings,
    checkIntervalMs: config.VALIDATOR_CHECK_INTERVAL_S * 1000,
    checksAtOnce: config.VALIDATOR_CHECKS_AT_ONCE,
    listIntervalMs: config.VALIDATOR_LIST_INTERVAL_S * 1000,
    certificates: gatewayCertificates(config),
    agentTls: config.VALIDATOR_AGENT_TLS === 'off' ? 'off' : 'on',
    releaseSource: releaseSourceOf(config, signer.hotkey),
    separateMonitoring: config.VALIDATOR_METRICS_LISTEN !== undefined,
    signaturesWaiting: keys.waiting,
  });
  const close = async () => {
    await serviceManager.stopping();
    await validator.close();
    await guard.stop();
    await database.close();
    homeLock.close();
    await keys.close();
    await tracing.close();
  };
  const place = { host: config.VALIDATOR_HOST, port: config.VALIDATOR_PORT };
  await listenOn(validator.server, place, { host: 'VALIDATOR_HOST', port: 'VALIDATOR_PORT' });
  const apart = config.VALIDATOR_METRICS_LISTEN;
  if (apart !== undefined && validator.monitoring !== null) {
    const name = 'VALIDATOR_METRICS_LISTEN';
    await listenOn(validator.monitoring, apart, { host: name, port: name });
  }
  validator.start();
  guard.start();
  log.info({ host: config.VALIDATOR_HOST, port: config.VALIDATOR_PORT }, 'validator ready');
  if (weightSettings.metagraph === null)
    log.warn('VALIDATOR_METAGRAPH is not set: no weights are computed');
  stopOnSignal(() =>
    withDeadline(systemClock, STOPS_WITHIN_MS, close()).catch((error: unknown) => {
      if (!(error instanceof DeadlineError)) throw error;
      // Nothing is lost: the store is written in transactions only.
      log.warn('shutdown takes too long and is cut off');
    }),
  );
  const limits = { maxHeartbeatAgeMs: HEARTBEAT_WITHIN_MS };
  await serviceManager.ready({ check: validator.vitals, limits });
}

function releaseSourceOf(config: ValidatorConfig, hotkey: string): ReleaseSource | null {
  if (config.VALIDATOR_AGENT_IMAGE === undefined) return null;
  return {
    image: config.VALIDATOR_AGENT_IMAGE,
    readLogin: () => releaseLoginOf(config),
    tag: config.VALIDATOR_AGENT_TAG,
    keyId: config.VALIDATOR_KEY_ID ?? hotkey,
    firstPermille: config.VALIDATOR_AGENT_ROLLOUT,
    expiryMs: config.VALIDATOR_AGENT_EXPIRY_S * 1000,
  };
}
