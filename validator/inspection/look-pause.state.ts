/** How soon an executor that did not pass is looked at again: with the next passes at first, then ever later. */
import type { HealthReport } from '#shared/api/central/validator-routes.ts';

const FIRST_PAUSE_MS = 1_000;
/**
 * What leaves an executor that never passes within the 3,000 documents that are kept of it: 2,016 in the 14 days that
 * evidence is kept for.
 */
const LONGEST_PAUSE_MS = 600_000;

export type Looked = {
  verdict: HealthReport['verdict'];
  /** Whether it was due. Somebody who asks makes the pause no longer. */
  isRegular: boolean;
  /** What the look before was followed by; null where that passed or there was none, and where something has changed since. */
  before: number | null;
  /** Between two looks at one that passes: no pause is longer. */
  intervalMs: number;
};

/** Milliseconds from a look to the next; null after one that passed, which the regular interval follows. */
export function pauseAfter({ verdict, isRegular, before, intervalMs }: Looked): number | null {
  if (verdict === 'verified') return null;
  if (!isRegular) return before;
  if (before === null) return 0;
  return Math.min(Math.max(before * 2, FIRST_PAUSE_MS), LONGEST_PAUSE_MS, intervalMs);
}
