/** What the cycles before say of an executor: its uptime and its failure average, from the ledger alone. */
import type { LedgerDb } from '../store/ledger.tables.ts';
import { goodTimeBefore, lastEntryBefore } from './cycle.store.ts';
import { nextFailurePpm, type Past } from './cycle-entry.ts';
import type { CycleEntry } from './cycle-set.ts';
import type { CycleVerdict } from './cycle-verdict.state.ts';
import type { WeightPolicy } from './weight-policy.ts';

const MINUTE_MS = 60_000;

/** One executor's verdict in one cycle of that many milliseconds. */
export type Moment = {
  executorId: string;
  cycle: number;
  verdict: CycleVerdict;
  lengthMs: number;
};

/** With the verdict of the moment itself; `isFirst`: nothing is known of before. */
export async function pastOf(
  ledger: LedgerDb,
  { executorId, cycle, verdict, lengthMs }: Moment,
  policy: WeightPolicy,
): Promise<Past & { isFirst: boolean }> {
  const windowCycles = Math.ceil((policy.uptime.full_minutes * MINUTE_MS) / lengthMs);
  const before = await lastEntryBefore(ledger, executorId, cycle);
  const others = verdict === 'withheld' ? windowCycles : windowCycles - 1;
  const goodMs = await goodTimeBefore(ledger, { executorId, cycle, count: others });
  const uptimeMs = goodMs + (verdict === 'ok' ? lengthMs : 0);
  return {
    failurePpm: nextFailurePpm(before?.failure_ppm ?? 0, verdict, policy),
    uptimeMinutes: Math.floor(uptimeMs / MINUTE_MS),
    // Written by us from a CycleEntry: its form is known.
    runtimeProven:
      before !== undefined && (JSON.parse(before.entry_json) as CycleEntry).runtime_proven,
    isFirst: before === undefined,
  };
}
