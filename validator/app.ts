/** Composition root of the validator: inspection, evidence, weights and gateway over the given ports. */
import { clockProbe, createReadiness } from '#shared/api/readiness.ts';
import { type Clock, DeadlineError, withDeadline } from '#shared/runtime/clock.ts';
import { createGuardedClock, type GuardedClock } from '#shared/runtime/guarded-clock.ts';
import { createHeartbeat, type Liveness, oldestHeartbeat } from '#shared/runtime/liveness.ts';
import type { Log } from '#shared/runtime/log.ts';
import { type Loop, startLoop } from '#shared/runtime/loop.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import type { Signer } from '#shared/signing/sr25519.ts';
import type { CertificateSource } from '#shared/tls/listener-certificate.ts';
import type { Transport } from '#shared/tls/transport.ts';
import { createCentralClient } from './central-client.ts';
import { type DatabaseHealth, databaseProbes, INTACT_DATABASE } from './database/database-watch.ts';
import { createEvidence } from './evidence/evidence.service.ts';
import { createGateway } from './gateway/gateway.ts';
import { createHealthDelivery } from './inspection/health-delivery.ts';
import { createInspection, type InspectionOptions } from './inspection/inspection.ts';
import { createReportDelivery } from './inspection/reports/report-delivery.ts';
import type { TrustedHotkey } from './keys/trusted-hotkeys.ts';
import { createValidatorMetrics } from './metrics.ts';
import { createProbes, NO_PROBES, type ProbeSettings } from './probes/probes.ts';
import { createRecords } from './records/records.ts';
import { probeStore, readSchema } from './store/evidence-store.ts';
import { acquireLease } from './store/lease.store.ts';
import { createOutbox } from './store/outbox.service.ts';
import type { EvidenceStore } from './store/tables.ts';
import { createReadTag } from './updates/image-registry.ts';
import { registerReleaseRoutes } from './updates/release.routes.ts';
import { createReleases, type ReleaseSource } from './updates/release.service.ts';
import { createRewardEstimates, registerRewardEstimateRoutes } from './weights/reward-estimate.ts';
import { createWeights, type WeightSettings } from './weights/weights.ts';
import { createWeightsDelivery } from './weights/weights-delivery.ts';

export type ValidatorOptions = {
  clock: Clock;
  /**
   * Guard that provides `clock`; the caller starts and stops it. If it is absent, the validator creates a guard that
   * checks `clock` but does not correct it.
   */
  guard?: GuardedClock;
  random: Random;
  log: Log;
  /** Signs evidence, epochs and weights, and requests to agents. */
  signer: Signer;
  /** Signs requests to the central API with the hotkey of `signer`; default: `signer`. */
  requestSigner?: Signer;
  /**
   * Keys whose evidence and epoch chains this validator extends, such as its previous key; default: the signer's key.
   */
  trusted?: readonly TrustedHotkey[];
  centralUrl: string;
  /** Transport of requests to the central API; default: fetch. */
  centralTransport?: Transport;
  /** Access to agents and hosts; default: over the network. */
  hosts?: InspectionOptions['hosts'];
  /** The key whose commands the gateway relays. */
  centralHotkey: Hotkey;
  policy: InspectionOptions['policy'];
  /** Evidence store; the caller closes it. */
  store: EvidenceStore;
  /** State of the store; absent: it counts as intact. */
  storeHealth?: DatabaseHealth;
  weightSettings: WeightSettings;
  /** Size of proofs of work; null disables them. */
  proof: InspectionOptions['proof'];
  /** Size of bandwidth measurements; null, the default, disables them. */
  line?: InspectionOptions['line'];
  /** Coordinates of this validator, for round trips; null, the default, reports none. */
  coordinates?: InspectionOptions['coordinates'];
  checkIntervalMs: number;
  listIntervalMs: number;
  /** Agent image whose releases are signed; null, the default, signs none. */
  releaseSource?: ReleaseSource | null;
  /** Executors inspected in parallel; default 512. */
  checksAtOnce?: number;
  /** Accounts and budget of hidden rentals; by default none are made. */
  probes?: ProbeSettings;
  /** Certificate of the gateway; null, the default, serves plain HTTP. */
  certificates?: CertificateSource | null;
  /** TLS of the connections to agents; default: `on`. */
  agentTls?: InspectionOptions['agentTls'];
  /** Serves metrics on a separate plain listener, and not on the gateway's. */
  separateMonitoring?: boolean;
  /** Number of signatures pending in the key thread. Leave out if the key is in this thread. */
  signaturesWaiting?(): number;
};

export type Validator = ReturnType<typeof createValidator>;

/**
 * Number of check intervals after a release within which a host must install it; until then an older agent gets only a
 * warning.
 */
const GRACE_CYCLES = 2;
const CHECKS_AT_ONCE = 512;
/**
 * Time for which the weights lease stays valid after the pause between two passes. Another process may acquire an
 * expired lease.
 */
const WEIGHTS_LEASE_MS = 60_000;

/** Times for which a shutdown waits for passes and for requests to the gateway. */
const PASSES_END_WITHIN_MS = 3_000;
const REQUESTS_END_WITHIN_MS = 3_000;

const DAMAGED: Liveness = { heartbeatAgeMs: 0, storeProblem: null, engine: 'unused' };

/** `start` begins the periodic passes; `close` ends them and the listeners. The caller listens on `server`. */
export function createValidator(options: ValidatorOptions) {
  const { clock, random, log, signer, store, weightSettings, listIntervalMs } = options;
  const guard = options.guard ?? createGuardedClock({ clock, log });
  const validator = signer.hotkey;
  const holder = random.uuid();
  const central = createCentralClient({
    baseUrl: options.centralUrl,
    signer: options.requestSigner ?? signer,
    clock,
    random,
    ...(options.centralTransport === undefined ? {} : { transport: options.centralTransport }),
  });
  const trusted = options.trusted ?? [{ hotkey: validator }];
  const { policy } = weightSettings;
  const evidence = createEvidence({ store, signer, trusted, clock, log, policy });
  const outbox = createOutbox({
    store,
    clock,
    random,
    log,
    deliveries: {
      'set-weights': createWeightsDelivery({ store, log, validator, central }),
      'health-report': createHealthDelivery(central),
      'report-outcome': createReportDelivery(central),
    },
  });
  const weights = createWeights({
    ...weightSettings,
    store,
    clock,
    log,
    signer,
    trusted,
    evidence,
    outbox,
    holdsLease() {
      const untilMs = clock.now() + listIntervalMs + WEIGHTS_LEASE_MS;
      return acquireLease(store, { name: 'weights', holder, untilMs }, clock.now());
    },
  });
  const metrics = createValidatorMetrics({
    clock,
    store,
    hotkey: validator,
    signaturesWaiting: options.signaturesWaiting ?? (() => 0),
    trust: guard,
  });
  const releases = createReleases({
    store,
    clock,
    log,
    signer,
    readTag: createReadTag(clock),
    source: options.releaseSource ?? null,
    graceMs: GRACE_CYCLES * options.checkIntervalMs,
  });
  const hiddenRentals = createProbes({
    settings: options.probes ?? NO_PROBES,
    store,
    clock,
    random,
    log,
    policy: options.policy.checks,
    centralUrl: options.centralUrl,
    listed: () => inspection.directory.known().map(({ id }) => id),
    holder,
  });
  const heartbeats = {
    check: createHeartbeat(clock),
    weights: createHeartbeat(clock),
    line: createHeartbeat(clock),
    report: createHeartbeat(clock),
  };
  const inspection = createInspection({
    store,
    clock,
    random,
    log,
    signer,
    central,
    policy: options.policy,
    evidence,
    outbox,
    metrics,
    releases: releases.expected,
    hiddenRentals,
    holder,
    trust: guard,
    heartbeats,
    proof: options.proof,
    line: options.line ?? null,
    coordinates: options.coordinates ?? null,
    agentTls: options.agentTls ?? 'on',
    ...(options.hosts === undefined ? {} : { hosts: options.hosts }),
    checkIntervalMs: options.checkIntervalMs,
    listIntervalMs,
    checksAtOnce: options.checksAtOnce ?? CHECKS_AT_ONCE,
  });
  const { health, measureLines, examineReports } = inspection;
  const rewardEstimates = createRewardEstimates({ ...weightSettings, store, validator });
  const { storeHealth = INTACT_DATABASE } = options;
  const gateway = createGateway({
    clock,
    random,
    log,
    audience: validator,
    central: options.centralHotkey,
    certificates: options.certificates ?? null,
    onPeerTime: guard.heardFrom,
    separateMonitoring: options.separateMonitoring === true,
    metrics,
    readiness: createReadiness(clock, {
      ...databaseProbes(storeHealth, () => readSchema(store)),
      clock: clockProbe(guard),
      // Checks continue with the last list, and reports wait in the outbox.
      central: { required: false, check: async () => inspection.directory.state() },
      hidden_rentals: { required: false, check: async () => hiddenRentals.state() },
    }),
    relay: inspection,
    routes: [
      (server) => registerReleaseRoutes(server, releases),
      (server) => registerRewardEstimateRoutes(server, rewardEstimates),
      createRecords({ store, clock, validator, trusted }),
    ],
  });

  const startPasses = (what: string, run: () => Promise<void>): Loop =>
    startLoop({
      clock,
      intervalMs: listIntervalMs,
      run,
      onError: (error) => log.warn({ err: error }, `${what} pass failed`),
    });
  /** A suspect clock would end cycles too early, and remove evidence. */
  const runWeights = async () => (guard.isSuspect() ? undefined : weights.runOnce());
  /** A suspect clock would spend the budget of another day. */
  const runHiddenRentals = async () => (guard.isSuspect() ? undefined : hiddenRentals.runOnce());
  let loops: Loop[] = [];
  const stopLoops = () => Promise.all(loops.map((loop) => loop.stop()));
  const stopPasses = async (): Promise<void> => {
    await stopLoops();
    await hiddenRentals.close();
  };
  const logAbandoned = (error: unknown): void => {
    if (!(error instanceof DeadlineError)) throw error;
    log.warn('shutdown does not wait any longer for unfinished work');
  };
  // A damaged store must not decide verdicts and weights. The gateway relays commands without it.
  storeHealth.damage.onRecord(() => void stopLoops());
  return {
    server: gateway.server,
    /** Listener for metrics and health, if separate. The caller listens on it. */
    monitoring: gateway.monitoring,
    start(): void {
      if (loops.length > 0 || storeHealth.damage.problem() !== null) return;
      loops = [
        startPasses('check', () => heartbeats.check.beatAfter(health.runOnce)),
        startPasses('weights', () => heartbeats.weights.beatAfter(runWeights)),
        startPasses('hidden rental', runHiddenRentals),
        startPasses('line', () => heartbeats.line.beatAfter(measureLines)),
        startPasses('report', () => heartbeats.report.beatAfter(examineReports)),
      ];
      const renewal = gateway.renewCertificate();
      if (renewal !== null) loops.push(renewal);
    },
    /** Inspects due executors now instead of waiting for the next pass. */
    wake: () => loops[0]?.wake(),
    /** State of the loops and the evidence store; valid after `start`. */
    async vitals(): Promise<Liveness> {
      // A restart would not repair a damaged store.
      if (storeHealth.damage.problem() !== null) return DAMAGED;
      const storeProblem = await probeStore(store);
      return { ...oldestHeartbeat(heartbeats), storeProblem, engine: 'unused' };
    },
    /** Runs one pass of each kind; for tests without periodic passes. */
    async runOnce(): Promise<void> {
      await health.runOnce();
      await measureLines();
      await examineReports();
      await runWeights();
    },
    /** Abandons checks. Other passes and requests have some seconds to end; what they store is stored in transactions. */
    async close(): Promise<void> {
      inspection.stop();
      await withDeadline(clock, PASSES_END_WITHIN_MS, stopPasses()).catch(logAbandoned);
      await withDeadline(clock, REQUESTS_END_WITHIN_MS, gateway.close()).catch(logAbandoned);
      await inspection.close();
    },
  };
}
