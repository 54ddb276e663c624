/** The validator's composition root: health loop, weights and gateway over the ports given. */
import { createAgentClient } from '#shared/api/agent/agent-client.ts';
import { rejectSecretsOverHttp } from '#shared/api/agent/secrets.ts';
import { createHttpServer } from '#shared/http/server.ts';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { createHeartbeat, type Liveness, oldestHeartbeat } from '#shared/runtime/liveness.ts';
import type { Log } from '#shared/runtime/log.ts';
import { type Loop, startLoop } from '#shared/runtime/loop.ts';
import type { Random } from '#shared/runtime/random.ts';
import { VERSION } from '#shared/runtime/version.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import type { Signer } from '#shared/signing/sr25519.ts';
import {
  CERTIFICATE_INTERVAL_MS,
  type CertificateSource,
  createCertificateJob,
} from '#shared/tls/listener-certificate.ts';
import { createCentralClient } from './central-client.ts';
import type { Policy } from './checks/check.ts';
import { createCheckHistory } from './checks/check-history.service.ts';
import { createProofBaselines } from './checks/proof-baseline.service.ts';
import { createEvidence } from './evidence/evidence.service.ts';
import { createSocketRelay, registerGatewayRoutes } from './gateway/gateway.routes.ts';
import { createGatewayAuth } from './gateway/gateway.ts';
import { createExecutorDirectory } from './inspection/executor-directory.ts';
import { createHealthService } from './inspection/health.service.ts';
import { createHealthDelivery } from './inspection/health-delivery.ts';
import { createHostLocks } from './inspection/host-locks.ts';
import { createInspectionQueue } from './inspection/inspection-queue.ts';
import { createLines } from './inspection/lines/line.service.ts';
import type { LineSize } from './inspection/lines/measure-line.ts';
import { createAgentLinks } from './inspection/links/agent-links.ts';
import type { AgentTls } from './inspection/links/open-link.ts';
import { createNetworkChecks } from './inspection/network-checks.ts';
import type { ProofSize } from './inspection/proof/host-proof.ts';
import { createProofRounds } from './inspection/proof/proof-round.ts';
import { createVerifier } from './inspection/proof/verifier.ts';
import { createRentalProbes } from './inspection/rental-probe/rental-probe.service.ts';
import { createSshLogin, readBanner } from './inspection/rental-probe/ssh-session.ts';
import type { TrustedHotkey } from './keys/trusted-hotkeys.ts';
import { createValidatorMetrics, registerMetricsRoutes } from './metrics.ts';
import { isShared, probeStore } from './store/evidence-store.ts';
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
  random: Random;
  log: Log;
  signer: Signer;
  /** Whose evidence is gone on from: of a key that was changed; the signer's own alone when absent. */
  trusted?: readonly TrustedHotkey[];
  centralUrl: string;
  /** The key whose commands the gateway relays. */
  centralHotkey: Hotkey;
  policy: Policy;
  /** Stays the caller's to close. */
  store: EvidenceStore;
  weightSettings: WeightSettings;
  /** What hosts have to prove; null for nothing. */
  proof: ProofSize | null;
  /** How lines are measured; null or absent: they are not. */
  line?: LineSize | null;
  checkIntervalMs: number;
  listIntervalMs: number;
  /** Which image of the agent is signed for; none when absent. */
  releaseSource?: ReleaseSource | null;
  /** Executors that are looked at at once; 512 when absent. */
  checksAtOnce?: number;
  /** Of the gateway; plain HTTP when absent. */
  certificates?: CertificateSource | null;
  /** Whether agents on this machine are to serve TLS too; `auto` when absent: they need not. */
  agentTls?: AgentTls;
  /** Whether metrics have a plain listener of their own, and none on the gateway's; not when absent. */
  separateMonitoring?: boolean;
  /** Of the key thread; none when absent: the key is in this thread. */
  signaturesWaiting?(): number;
};

export type Validator = ReturnType<typeof createValidator>;

const BODY_LIMIT_BYTES = 1024 * 1024;
/** Of checks, that a host may take to follow a new release of the agent. */
const GRACE_CYCLES = 2;
/** Nothing there takes a body. */
const MONITORING_BODY_LIMIT_BYTES = 1_024;
const CHECKS_AT_ONCE = 512;
/** Beyond the pause between two passes: another process takes over cycles and weights after it. */
const WEIGHTS_LEASE_MS = 60_000;
const KBIT_PER_MBIT = 1_000;
/** A line costs its owner what is streamed, and changes seldom. */
const LINE_INTERVAL_MS = 3_600_000;
/** Beyond what two measurements of a line take. */
const LINES_LEASE_MS = 300_000;

/** `start` begins the health loop; `close` ends it and the listener. The caller listens on `server`. */
export function createValidator(options: ValidatorOptions) {
  const { clock, random, log, signer, store, weightSettings, listIntervalMs } = options;
  const holder = random.uuid();
  const central = createCentralClient({ baseUrl: options.centralUrl, signer, clock, random });
  const trusted = options.trusted ?? [{ hotkey: signer.hotkey }];
  const evidence = createEvidence({
    ...{ store, signer, trusted, clock, log, policy: weightSettings.policy },
  });
  const validator = signer.hotkey;
  const outbox = createOutbox({
    ...{ store, clock, random, log },
    deliveries: {
      'set-weights': createWeightsDelivery({ store, log, validator, central }),
      'health-report': createHealthDelivery(central),
    },
  });
  const weights = createWeights({
    ...weightSettings,
    ...{ store, clock, log, signer, trusted, evidence, outbox },
    holdsLease() {
      const untilMs = clock.now() + listIntervalMs + WEIGHTS_LEASE_MS;
      return acquireLease(store, { name: 'weights', holder, untilMs }, clock.now());
    },
  });
  const metrics = createValidatorMetrics({
    ...{ clock, store, hotkey: signer.hotkey },
    signaturesWaiting: options.signaturesWaiting ?? (() => 0),
  });
  const checkHistory = createCheckHistory({ store, clock });
  const baselines = createProofBaselines({ store, clock });
  const verifier = createVerifier();
  const directory = createExecutorDirectory({ central, clock, log });
  const links = createAgentLinks({
    ...{ store, signer, clock, random },
    tls: options.agentTls ?? 'auto',
  });
  const releases = createReleases({
    ...{ store, clock, log, signer, readTag: createReadTag(clock) },
    source: options.releaseSource ?? null,
    graceMs: GRACE_CYCLES * options.checkIntervalMs,
  });
  const { sendTo, connectTo } = links;
  const turns = {
    check: createHeartbeat(clock),
    weights: createHeartbeat(clock),
    line: createHeartbeat(clock),
  };
  const hosts = createHostLocks({ store, clock, log, holder });
  const rentals = createRentalProbes({
    ...{ store, clock, random, log },
    logIn: createSshLogin(clock),
  });
  const lines = createLines({
    ...{ store, clock, random, log, connectTo },
    ...{ size: options.line ?? null, intervalMs: LINE_INTERVAL_MS },
    beatAfter: turns.line.beatAfter,
    hosts,
    lowKbit: options.policy.checks.min_bandwidth_mbit * KBIT_PER_MBIT,
    holdsLease: () => {
      const untilMs = clock.now() + LINES_LEASE_MS;
      return acquireLease(store, { name: 'lines', holder, untilMs }, clock.now());
    },
  });
  const inspections = createInspectionQueue({
    ...{ store, clock, holder, intervalMs: options.checkIntervalMs },
    // Several processes see the same executor with each pass of theirs.
    pauseMs: isShared(store) ? listIntervalMs / 2 : 0,
  });
  const health = createHealthService({
    ...{ hosts, rentals, readBanner },
    directory,
    clientOf: (executor) => createAgentClient({ send: sendTo(executor), clock }),
    identityOf: links.identityOf,
    clock,
    log,
    policy: options.policy,
    checkHistory,
    releases: releases.expected,
    baselines,
    proofs: createProofRounds({
      ...{ clock, random, baselines, verifier, onProven: metrics.proven },
      ...{ size: options.proof, intervalMs: options.checkIntervalMs },
    }),
    metrics,
    ways: createNetworkChecks({
      ...{ clock, random, intervalMs: options.checkIntervalMs },
      ...{ isOn: options.proof !== null, egressImage: options.policy.checks.egress_image },
      templateImages: options.policy.checks.template_images,
    }),
    lines,
    inspections,
    // A pass over many executors is long: each that is judged shows that it goes on.
    evidence: { record: (...run) => turns.check.beatAfter(() => evidence.record(...run)) },
    ...{ outbox, atOnce: options.checksAtOnce ?? CHECKS_AT_ONCE },
  });

  const auth = createGatewayAuth({
    clock,
    log,
    audience: signer.hotkey,
    central: options.centralHotkey,
  });
  const { certificates = null } = options;
  const certificate = certificates === null ? null : createCertificateJob(certificates, log);
  const server = createHttpServer({
    log,
    clock,
    random,
    bodyLimitBytes: BODY_LIMIT_BYTES,
    acceptTraceparent: true,
    verifyBody: auth.verifyBody,
    tls: certificate?.current() ?? null,
  });
  auth.install(server);
  rejectSecretsOverHttp(server);
  const monitoring =
    options.separateMonitoring === true
      ? createHttpServer({ log, clock, random, bodyLimitBytes: MONITORING_BODY_LIMIT_BYTES })
      : null;
  registerMetricsRoutes(monitoring ?? server, { metrics });
  const startedAt = naiveUtc(clock.now());
  for (const each of monitoring === null ? [server] : [server, monitoring]) {
    each.get('/healthz', async () => ({ status: 'ok' }));
    each.get('/version', async () => ({
      version: VERSION,
      hotkey: signer.hotkey,
      started_at: startedAt,
    }));
  }
  const relaySocket = createSocketRelay(connectTo);
  registerGatewayRoutes(server, { directory, health, rentals, sendTo, relaySocket, clock });
  registerReleaseRoutes(server, releases);
  registerRewardEstimateRoutes(
    server,
    createRewardEstimates({ ...weightSettings, store, validator }),
  );

  const startPasses = (what: string, run: () => Promise<void>): Loop =>
    startLoop({
      clock,
      intervalMs: listIntervalMs,
      run,
      onError: (error) => log.warn({ err: error }, `${what} pass failed`),
    });
  const stopping = new AbortController();
  async function measureLines(): Promise<void> {
    const answering = await inspections.answering();
    const there = directory.known().filter(({ id }) => answering.has(id));
    await lines.runOnce(there, stopping.signal);
  }
  let loops: Loop[] = [];
  return {
    server,
    /** Metrics and health, where they are separate. Listening is the caller's. */
    monitoring,
    start(): void {
      if (loops.length > 0) return;
      loops = [
        startPasses('check', () => turns.check.beatAfter(health.runOnce)),
        startPasses('weights', () => turns.weights.beatAfter(weights.runOnce)),
        startPasses('line', () => turns.line.beatAfter(measureLines)),
      ];
      if (certificate === null) return;
      loops.push(certificate.renewEvery(CERTIFICATE_INTERVAL_MS, server, clock));
    },
    /** Looks at due executors now instead of at the next pass. */
    wake: () => loops[0]?.wake(),
    /** How the loops and the ledger are, once started. */
    vitals: async (): Promise<Liveness> => ({
      ...oldestHeartbeat(turns),
      storeProblem: await probeStore(store),
      engine: 'unused',
    }),
    /** One pass of each kind, for tests that have no periodic work running. */
    async runOnce(): Promise<void> {
      await health.runOnce();
      await measureLines();
      await weights.runOnce();
    },
    async close(): Promise<void> {
      stopping.abort();
      await Promise.all(loops.map((loop) => loop.stop()));
      await Promise.all([server.close(), monitoring?.close()]);
      links.forget();
      await verifier.close();
    },
  };
}
