/** Composition of the weights module: closes cycles, computes epochs, posts them and deletes expired rows. */
import { type Clock, startOfDay } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import { runEach } from '#shared/runtime/loop.ts';
import type { Signer } from '#shared/signing/sr25519.ts';
import type { EvidenceService } from '../evidence/evidence.service.ts';
import type { TrustedHotkey } from '../keys/trusted-hotkeys.ts';
import type { Outbox } from '../store/outbox.service.ts';
import type { EvidenceStore } from '../store/tables.ts';
import { createCycles } from './cycle.service.ts';
import { createEpochs } from './epoch.service.ts';
import type { Metagraph } from './metagraph.ts';
import type { WeightPolicy } from './weight-policy.ts';

/** Settings of the weight computation; times in milliseconds. */
export type WeightSettings = {
  policy: WeightPolicy;
  /** Null if registrations are unknown: no weights are computed. */
  metagraph: Metagraph | null;
  /** True if simulated GPUs earn points; only in a local marketplace. */
  embedded: boolean;
  cycleMs: number;
  epochMs: number;
  /** Retention of epochs and of documents of passed checks in days. */
  retentionDays: number;
  /** Retention of verdicts in days, with hashes, signatures and the documents of checks that did not pass; null: no limit. */
  verdictDays: number | null;
};

export type WeightsDeps = WeightSettings & {
  store: EvidenceStore;
  clock: Clock;
  log: Log;
  signer: Signer;
  /** Keys whose epochs the chain continues. */
  trusted: readonly TrustedHotkey[];
  outbox: Outbox;
  evidence: EvidenceService;
  /** Resolves with true if this process holds the lease on weights. Processes that share the store share the lease. */
  holdsLease(): Promise<boolean>;
};

const DAY_MS = 86_400_000;
/** Shortest time between two attempts of a sweep, and between the start and the first. */
const SWEEP_INTERVAL_MS = 3_600_000;
/**
 * Number of days by which cycles are retained longer than evidence. It exceeds the longest uptime window of a policy
 * and covers the cycles that stored epochs name.
 */
const EXTRA_CYCLE_DAYS = 15;
const LONGEST_CYCLE_DAYS = 1;

export function createWeights(deps: WeightsDeps) {
  const { store, clock, log, metagraph, policy, cycleMs, outbox, evidence } = deps;
  const { retentionDays, verdictDays } = deps;
  const cycles = createCycles({ store, clock, log, policy, cycleMs });
  const epochs = metagraph === null ? null : createEpochs({ ...deps, metagraph });
  let attemptedMs = clock.monotonicMs();
  let sweptDayMs: number | null = null;

  /** Deletes what has expired, once a day, because limits are days and a sweep reads the chain of each executor. */
  async function sweep(): Promise<void> {
    const todayMs = startOfDay(clock.now());
    if (todayMs === sweptDayMs || clock.monotonicMs() - attemptedMs < SWEEP_INTERVAL_MS) return;
    attemptedMs = clock.monotonicMs();
    const daysAgo = (days: number) => todayMs - days * DAY_MS;
    const cycleDays = retentionDays + EXTRA_CYCLE_DAYS;
    const oldestMs = verdictDays === null ? 0 : daysAgo(verdictDays);
    await evidence.dropPassed(daysAgo(retentionDays));
    // Heads of chains outlive the cycles that name them, because heads distinguish pruned documents from removed ones.
    const endsBeforeMs = daysAgo(cycleDays + LONGEST_CYCLE_DAYS);
    await evidence.prune(oldestMs, endsBeforeMs, daysAgo(retentionDays));
    await cycles.deleteBefore(daysAgo(cycleDays));
    sweptDayMs = todayMs;
  }

  return {
    /** Runs one pass; a failed step does not skip the following ones. */
    async runOnce(): Promise<void> {
      if (!(await deps.holdsLease())) return;
      await runEach([
        () => cycles.closeEnded(),
        async () => epochs?.computeDue(),
        () => outbox.runOnce(),
        sweep,
      ]);
    },
  };
}
