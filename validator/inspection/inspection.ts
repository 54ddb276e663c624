/** Composition of the inspection module: health rounds, probes, proofs, network checks, lines and renters' reports. */
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { ClockTrust } from '#shared/runtime/guarded-clock.ts';
import type { Heartbeat } from '#shared/runtime/liveness.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Signer } from '#shared/signing/sr25519.ts';
import type { CentralClient } from '../central-client.ts';
import type { Policy } from '../checks/check.ts';
import { createCheckHistory } from '../checks/check-history.service.ts';
import type { EvidenceService } from '../evidence/evidence.service.ts';
import type { ValidatorMetrics } from '../metrics.ts';
import { isShared } from '../store/evidence-store.ts';
import { acquireLease } from '../store/lease.store.ts';
import type { Outbox } from '../store/outbox.service.ts';
import type { EvidenceStore } from '../store/tables.ts';
import { createExecutorDirectory } from './executor-directory.ts';
import { createHealthService, type HealthOptions } from './health.service.ts';
import { createHostLocks } from './host-locks.ts';
import { createInspectionQueue } from './inspection-queue.ts';
import { createLines } from './lines/line.service.ts';
import type { LineSize } from './lines/measure-line.ts';
import { type HostAccess, hostsOnNetwork } from './links/host-access.ts';
import type { AgentTls } from './links/open-link.ts';
import { createNetworkChecks } from './network-checks.ts';
import type { ProofSize } from './proof/host-proof.ts';
import { createProofs } from './proof/proofs.ts';
import { createRentalProbes } from './rental-probe/rental-probe.service.ts';
import { createRentNode, type ReportedRentals } from './reports/rent-node.ts';
import { createReportExaminer } from './reports/report.service.ts';
import { createReportedNodes } from './reports/reported-nodes.service.ts';
import { type Coordinates, createRoundTrips } from './round-trip.ts';

export type InspectionOptions = {
  store: EvidenceStore;
  clock: Clock;
  random: Random;
  log: Log;
  signer: Signer;
  central: CentralClient;
  policy: Policy;
  evidence: Pick<EvidenceService, 'record'>;
  outbox: Outbox;
  metrics: Pick<ValidatorMetrics, 'checked' | 'passed' | 'proven'>;
  releases: HealthOptions['releases'];
  hiddenRentals: HealthOptions['hiddenRentals'] & ReportedRentals;
  /** Unique id of this process among those that share the store. */
  holder: string;
  trust: Pick<ClockTrust, 'isSuspect' | 'resumedAtMs'>;
  heartbeats: { check: Heartbeat; line: Heartbeat; report: Heartbeat };
  /** Null disables proofs of work and network checks. */
  proof: ProofSize | null;
  /** Null disables line measurements. */
  line: LineSize | null;
  /** Coordinates of this validator; null disables the measurement of round trips. */
  coordinates: Coordinates | null;
  agentTls: AgentTls;
  /** Default: over the network. */
  hosts?: HostAccess;
  checkIntervalMs: number;
  listIntervalMs: number;
  checksAtOnce: number;
};

/** Request of a check of the whole host. */
const WHOLE_HOST = { rental_in_progress: false, gpu_uuids: [] };
const KBIT_PER_MBIT = 1_000;
/** Interval between two measurements of a line. Measurements cost the provider traffic, and lines change rarely. */
const LINE_INTERVAL_MS = 3_600_000;
/** Duration of the lease on measurements; longer than two measurements of a line. */
const LINES_LEASE_MS = 300_000;

/** Duration of the lease on examinations of reports; longer than a test rental. */
const REPORTS_LEASE_MS = 600_000;

/** Error of a check that is requested or unfinished when the process stops. */
const STOPPING = new ApiError('upstream_unavailable', 'The validator is stopping', { status: 503 });

export type Inspection = ReturnType<typeof createInspection>;

export function createInspection(options: InspectionOptions) {
  const { store, clock, random, log, signer, holder, policy, evidence, heartbeats } = options;
  const { checkIntervalMs, listIntervalMs, metrics, proof } = options;
  const stopping = new AbortController();
  const access =
    options.hosts ?? hostsOnNetwork({ store, signer, clock, random, tls: options.agentTls });
  const proofs = createProofs({
    store,
    verifier: access.verifier,
    clock,
    random,
    onProven: metrics.proven,
    size: proof,
    intervalMs: checkIntervalMs,
  });
  const directory = createExecutorDirectory({ central: options.central, clock, log });
  const { sendTo, connectTo, clientOf, identityOf, observePort, readPort, readBanner } = access;
  const hosts = createHostLocks({ store, clock, log, holder });
  const rentals = createRentalProbes({ store, clock, random, log, logIn: access.logIn });
  const reported = createReportedNodes({ store, clock, intervalMs: checkIntervalMs });
  const lines = createLines({
    store,
    clock,
    random,
    log,
    connectTo,
    size: options.line,
    intervalMs: LINE_INTERVAL_MS,
    beatAfter: heartbeats.line.beatAfter,
    hosts,
    lowKbit: policy.checks.min_bandwidth_mbit * KBIT_PER_MBIT,
    holdsLease: () => {
      const untilMs = clock.now() + LINES_LEASE_MS;
      return acquireLease(store, { name: 'lines', holder, untilMs }, clock.now());
    },
  });
  const inspections = createInspectionQueue({
    store,
    clock,
    holder,
    trust: options.trust,
    intervalMs: checkIntervalMs,
    // Every process that shares the store visits an executor in each of its passes.
    pauseMs: isShared(store) ? listIntervalMs / 2 : 0,
  });
  const health = createHealthService({
    directory,
    clientOf,
    identityOf,
    observePort,
    clock,
    log,
    policy,
    inspections,
    checkHistory: createCheckHistory({ store, clock }),
    releases: options.releases,
    baselines: proofs.baselines,
    proofs: proofs.rounds,
    network: createNetworkChecks({
      clock,
      random,
      readPort,
      intervalMs: checkIntervalMs,
      isEnabled: proof !== null,
      egressImage: policy.checks.egress_image,
      templateImages: policy.checks.template_images,
    }),
    lines,
    hiddenRentals: options.hiddenRentals,
    roundTrip: createRoundTrips({ clock, coordinates: options.coordinates }),
    hosts,
    rentals,
    reported,
    readBanner,
    // A pass over many executors takes long, so each judged executor counts as progress.
    evidence: { record: (...run) => heartbeats.check.beatAfter(() => evidence.record(...run)) },
    outbox: options.outbox,
    stopping: stopping.signal,
    atOnce: options.checksAtOnce,
    metrics,
  });
  const recheck = (executorId: string) => health.checkNow(executorId, WHOLE_HOST);
  const reports = createReportExaminer({
    store,
    clock,
    log,
    signer,
    central: options.central,
    outbox: options.outbox,
    known: directory.known,
    clientOf,
    runInPod: access.runInPod,
    readBanner,
    rentNode: createRentNode({ rentals, recheck, hidden: options.hiddenRentals }),
    recheck,
    holdsLease: () => {
      const untilMs = clock.now() + REPORTS_LEASE_MS;
      return acquireLease(store, { name: 'reports', holder, untilMs }, clock.now());
    },
    beatAfter: heartbeats.report.beatAfter,
    intervalMs: checkIntervalMs,
  });

  return {
    directory,
    health,
    rentals,
    sendTo,
    connectTo,
    /** Examines renters' reports. */
    examineReports: reports.runOnce,
    /** Measures the lines of due executors whose agent answered in the last inspection. */
    async measureLines(): Promise<void> {
      const reachable = await inspections.reachable();
      const executors = directory.known().filter(({ id }) => reachable.has(id));
      await lines.runOnce(executors, stopping.signal);
    },
    /** Abandons checks and measurements; call before `close` and wait for running passes in between. */
    stop: () => stopping.abort(STOPPING),
    async close(): Promise<void> {
      access.closeAll();
      await proofs.close();
    },
  };
}
