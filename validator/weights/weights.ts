/** The validator's way from evidence to posted weights, put together. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import { runEach } from '#shared/runtime/loop.ts';
import type { Signer } from '#shared/signing/sr25519.ts';
import type { EvidenceService } from '../evidence/evidence.service.ts';
import type { TrustedHotkey } from '../keys/trusted-hotkeys.ts';
import type { Outbox } from '../store/outbox.service.ts';
import type { EvidenceStore } from '../store/tables.ts';
import { type Cycles, createCycles } from './cycle.service.ts';
import { createEpochs, type Epochs } from './epoch.service.ts';
import type { Metagraph } from './metagraph.ts';
import type { WeightPolicy } from './weight-policy.ts';

/** How weights are made; times in milliseconds. */
export type Weighing = {
  policy: WeightPolicy;
  /** Null: nobody knows who is registered, and no weights are computed. */
  metagraph: Metagraph | null;
  /** Whether simulated GPUs score: in a marketplace on one's own machine only. */
  embedded: boolean;
  cycleMs: number;
  epochMs: number;
  /** Evidence and epochs older than this are forgotten. */
  retentionDays: number;
};

export type WeightsDeps = Weighing & {
  store: EvidenceStore;
  clock: Clock;
  log: Log;
  signer: Signer;
  /** Whose epochs are gone on from. */
  trusted: readonly TrustedHotkey[];
  outbox: Outbox;
  evidence: EvidenceService;
  /** Whether it falls to this process now, of those that share the ledger. */
  isOurs(): Promise<boolean>;
};

export function createWeights(deps: WeightsDeps) {
  const { store, clock, log, metagraph, policy, cycleMs } = deps;
  return createWeightsJob({
    ...deps,
    cycles: createCycles({ store, clock, log, policy, cycleMs }),
    epochs: metagraph === null ? null : createEpochs({ ...deps, metagraph }),
  });
}

// MERGED validator/weights/weights.ts: From evidence to posted weights: closes cycles, computes what is due, posts it, forgets what is old.
const DAY_MS = 86_400_000;
const SWEEP_INTERVAL_MS = 3_600_000;
/** Longer than the longest window of uptime that a policy may have, and than what epochs refer to. */
const CYCLES_KEPT_DAYS = 15;
const LONGEST_CYCLE_DAYS = 1;

export type WeightsJobOptions = {
  clock: Clock;
  cycles: Cycles;
  /** Null where it is not known who is registered: nothing is computed then. */
  epochs: Epochs | null;
  outbox: Outbox;
  evidence: EvidenceService;
  /** Evidence older than this is forgotten. */
  retentionDays: number;
  /** Whether it falls to this process now, of those that share the ledger. */
  isOurs(): Promise<boolean>;
};

export function createWeightsJob(options: WeightsJobOptions) {
  const { clock, cycles, epochs, outbox, evidence, retentionDays } = options;
  let sweptMs = clock.monotonicMs();

  async function sweep(): Promise<void> {
    if (clock.monotonicMs() - sweptMs < SWEEP_INTERVAL_MS) return;
    sweptMs = clock.monotonicMs();
    const daysAgo = (days: number) => clock.now() - days * DAY_MS;
    const cyclesKeptDays = retentionDays + CYCLES_KEPT_DAYS;
    // Whatever a cycle names has an end, which tells what was forgotten from what was taken away.
    await evidence.forget(daysAgo(retentionDays), daysAgo(cyclesKeptDays + LONGEST_CYCLE_DAYS));
    await cycles.forget(daysAgo(cyclesKeptDays));
  }

  return {
    /** One pass; a step that fails does not keep the next from being taken. */
    async runOnce(): Promise<void> {
      if (!(await options.isOurs())) return;
      await runEach([
        () => cycles.closeEnded(),
        async () => epochs?.computeDue(),
        () => outbox.runOnce(),
        sweep,
      ]);
    },
  };
}
