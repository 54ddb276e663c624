/** From evidence to posted weights: closes cycles, computes what is due, posts it, forgets what is old. */
import type { Clock } from '#shared/runtime/clock.ts';
import { runEach } from '#shared/runtime/loop.ts';
import type { EvidenceService } from '../evidence/evidence.service.ts';
import type { Outbox } from '../store/outbox/outbox.service.ts';
import type { Cycles } from './cycle.service.ts';
import type { Epochs } from './epoch.service.ts';

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
  keptDays: number;
  /** Whether it falls to this process now, of those that share the ledger. */
  isOurs(): Promise<boolean>;
};

export function createWeightsJob(options: WeightsJobOptions) {
  const { clock, cycles, epochs, outbox, evidence, keptDays } = options;
  let sweptMs = clock.monotonicMs();

  async function sweep(): Promise<void> {
    if (clock.monotonicMs() - sweptMs < SWEEP_INTERVAL_MS) return;
    sweptMs = clock.monotonicMs();
    const daysAgo = (days: number) => clock.now() - days * DAY_MS;
    const cyclesKeptDays = keptDays + CYCLES_KEPT_DAYS;
    // Whatever a cycle names has an end, which tells what was forgotten from what was taken away.
    await evidence.forget(daysAgo(keptDays), daysAgo(cyclesKeptDays + LONGEST_CYCLE_DAYS));
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
