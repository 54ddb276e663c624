/** Random operations and faults from a new seed for a long time. */
import { systemClock } from '#shared/runtime/clock.ts';
import { finding, type Row } from '../measure/row.ts';
import { runAtRandom } from './random-run.ts';

const MS_PER_MINUTE = 60_000;

/** Rejects with the seed when an invariant is violated or the pods do not settle. */
export async function randomOperations(options: {
  seed: number;
  minutes: number;
  print(line: string): void;
}): Promise<Row[]> {
  const { seed, minutes, print } = options;
  print(`random operations, seed ${seed}`);
  const untilMs = systemClock.monotonicMs() + minutes * MS_PER_MINUTE;
  const counts = await runAtRandom(seed, () => systemClock.monotonicMs() < untilMs);
  print(JSON.stringify(counts));
  const value = Object.values(counts).reduce((sum, count) => sum + count, 0);
  return [finding(`random operations, seed ${seed}`, value, '', 'all settle', true)];
}
