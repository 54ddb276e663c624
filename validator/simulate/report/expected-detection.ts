/** Results of inspections for each cheat under the policies of a run, which explain why a host was not found. */
import { readCheckPolicy } from '../../checks/check-policy.ts';
import { CHEATS } from '../../coverage/cheats.ts';
import { coverageOfCheat } from '../../coverage/coverage.ts';
import type { WeightPolicy } from '../../weights/weight-policy.ts';
import { SIMULATED_CHECKS } from '../world/settings.ts';
import type { ExpectedDetection } from './report.ts';

/** `atMs`: time at which the modes of the checks are judged. Throws RangeError for an unknown cheat. */
export function expectedDetection(
  id: string,
  { atMs, weights }: { atMs: number; weights: WeightPolicy },
): ExpectedDetection {
  const cheat = CHEATS.find((each) => each.id === id);
  if (cheat === undefined) throw new RangeError(`there is no cheat ${id}`);
  const checks = { ...readCheckPolicy(), ...SIMULATED_CHECKS };
  const { outcome, reasons, looks } = coverageOfCheat(cheat, { atMs, checks, weights });
  return { outcome, checks: [...reasons], inspections: looks };
}
