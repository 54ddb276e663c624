/** One line of the soak: a figure after a long run, and the bar that it must keep. */
import { median } from '../bench/row.ts';

export type SoakRow = {
  name: string;
  value: number;
  unit: string;
  /** The promise, in words. */
  bar: string;
  holds: boolean;
};

/** A figure at one moment. */
export type Sample = { atMs: number; value: number };

/** A row whose bar is a largest value. */
export function ceiling(name: string, value: number, unit: string, most: number): SoakRow {
  return { name, value, unit, bar: `at most ${most} ${unit}`, holds: value <= most };
}

/**
 * How much the samples rise in `perMs`: the median of the slopes between all pairs (Theil and Sen). The line
 * of least squares would follow the single peaks that a collection of garbage leaves, wherever they fall.
 */
export function rise(samples: readonly Sample[], perMs: number): number {
  const slopes = samples.flatMap((from, index) =>
    samples.slice(index + 1).map((to) => (to.value - from.value) / (to.atMs - from.atMs)),
  );
  return median(slopes) * perMs;
}
