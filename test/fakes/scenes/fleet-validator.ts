/** The inspections of a validator over a fleet in memory: real rounds, checks and store; modelled hosts. */
import type { Clock } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Policy } from '../../../validator/checks/check.ts';
import { createCheckHistory } from '../../../validator/checks/check-history.service.ts';
import type { CheckPolicy } from '../../../validator/checks/check-policy.ts';
import { createProofBaselines } from '../../../validator/checks/proof-baseline.service.ts';
import type { CheckRun } from '../../../validator/evidence/document.ts';
import {
  createHealthService,
  type HealthOptions,
} from '../../../validator/inspection/health.service.ts';
import { createHostLocks } from '../../../validator/inspection/host-locks.ts';
import { createInspectionQueue } from '../../../validator/inspection/inspection-queue.ts';
import { createNetworkChecks } from '../../../validator/inspection/network-checks.ts';
import { createProofRounds } from '../../../validator/inspection/proof/proof-round.ts';
import { createRentalProbes } from '../../../validator/inspection/rental-probe/rental-probe.service.ts';
import { createReportedNodes } from '../../../validator/inspection/reports/reported-nodes.service.ts';
import { AGENT_DIGEST } from '../../../validator/simulate/fleet/conduct.ts';
import type { HostFleet } from '../../../validator/simulate/fleet/host-fleet.ts';
import type { EvidenceStore } from '../../../validator/store/tables.ts';
import type { ManualClock } from '../manual-clock.ts';
import { TRUSTED_CLOCK } from '../trusted-clock.ts';

const log = createLog({ name: 'test', level: 'silent' });
const HOLDER = 'validator';

export type FleetValidatorOptions = {
  fleet: HostFleet;
  clock: ManualClock;
  random: Random;
  store: EvidenceStore;
  checks: CheckPolicy;
  intervalMs: number;
  /** Default: no hidden rentals. */
  hiddenRentals?: HealthOptions['hiddenRentals'];
  /** Called with every recorded run. */
  onRun(run: CheckRun): void;
};

/** The fleet's model computes no fills, so that their sizes matter only to the protocol. */
const SMALLEST_FILL = {
  kind: 'fill',
  lanes: 1,
  lane_blocks: 64,
  steps: 1,
  readMs: 20_000,
} as const;

/** Inspects one host after the other, because the delays of a host advance the only clock. */
export function createFleetValidator(options: FleetValidatorOptions) {
  const { fleet, clock, random, store, checks, intervalMs } = options;
  const policy: Policy = { acceptSimulated: false, checks };
  const baselines = createProofBaselines({ store, clock });
  const rentals = createRentalProbes({
    store,
    clock: passingTime(clock),
    random,
    log,
    logIn: fleet.logIn,
  });
  const health = createHealthService({
    clock,
    log,
    policy,
    baselines,
    atOnce: 1,
    readBanner: fleet.readBanner,
    observePort: async () => ({ found: 'refused', sent: 'tls' }),
    releases: async (running) => ({
      target: AGENT_DIGEST,
      sequence: 1,
      is_known: running === AGENT_DIGEST,
      rollout_permille: 1_000,
      grace_until_ms: 0,
    }),
    metrics: { checked: () => undefined, passed: () => undefined },
    directory: {
      ids: async () => new Set(fleet.listings().map(({ id }) => id)),
      drainChanged: () => [],
      find: fleet.find,
    },
    clientOf: fleet.clientOf,
    identityOf: fleet.identityOf,
    checkHistory: createCheckHistory({ store, clock }),
    inspections: createInspectionQueue({
      store,
      clock,
      holder: HOLDER,
      trust: TRUSTED_CLOCK,
      intervalMs,
      pauseMs: 0,
    }),
    proofs: createProofRounds({
      clock,
      random,
      size: {
        product: { n: 64, rounds: 1 },
        memory: SMALLEST_FILL,
        disk: SMALLEST_FILL,
        gpu: { n: 64, rounds: 1, fillPermille: 1, laneBlocks: 64, steps: 1 },
      },
      intervalMs,
      baselines,
      verifier: fleet.verifier,
      onProven: () => undefined,
    }),
    network: createNetworkChecks({
      clock,
      random,
      readPort: fleet.readPort,
      isEnabled: true,
      intervalMs,
      egressImage: checks.egress_image,
      templateImages: checks.template_images,
    }),
    lines: { facts: fleet.lineOf },
    hiddenRentals: options.hiddenRentals ?? { facts: async () => null },
    hosts: createHostLocks({ store, clock, log, holder: HOLDER }),
    rentals,
    reported: createReportedNodes({ store, clock, intervalMs }),
    evidence: {
      async record(run, first) {
        if (first !== undefined) await store.transaction().execute(first);
        options.onRun(run);
        return run.facts.executor.id;
      },
    },
    outbox: { runOnce: async () => undefined },
    stopping: new AbortController().signal,
  });
  return {
    /** Inspects every due host. */
    runOnce: health.runOnce,
    /** Inspects a host now. */
    checkNow: health.checkNow,
    rentals,
  };
}

/** A clock on which a wait advances the time, for waits during which nothing else happens. */
export const passingTime = (clock: ManualClock): Clock => ({
  ...clock,
  async sleep(ms, signal) {
    await clock.advance(ms);
    signal?.throwIfAborted();
  },
});
