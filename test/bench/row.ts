/** One line of the benchmark: ours beside a reference measured in the same run (design, Benchmarks). */

export type BenchRow = {
  name: string;
  unit: string;
  ours: number;
  reference: number;
  /** What the reference is, in words. */
  against: string;
  /** ours / reference. */
  ratio: number;
  /** The promise, in words. */
  bar: string;
  holds: boolean;
};

/** The middle value; of an even count the mean of the two middle ones. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** A row whose bar is a largest ratio to the reference. */
export function ratioRow(
  name: string,
  unit: string,
  against: string,
  measured: { ours: number; reference: number },
  maxRatio: number,
): BenchRow {
  const ratio = measured.ours / measured.reference;
  const bar = `at most ${maxRatio.toFixed(2)}x`;
  return { name, unit, against, ...measured, ratio, bar, holds: ratio <= maxRatio };
}

/** A row whose bar is a largest value, whatever the reference says. */
export function ceilingRow(
  name: string,
  unit: string,
  against: string,
  measured: { ours: number; reference: number },
  ceiling: number,
): BenchRow {
  const ratio = measured.ours / measured.reference;
  const bar = `at most ${ceiling} ${unit}`;
  return { name, unit, against, ...measured, ratio, bar, holds: measured.ours <= ceiling };
}

/** A row whose bar is a smallest ratio to the reference: a rate, of which more is better. */
export function shareRow(
  name: string,
  unit: string,
  against: string,
  measured: { ours: number; reference: number },
  minRatio: number,
): BenchRow {
  const ratio = measured.ours / measured.reference;
  const bar = `at least ${minRatio.toFixed(2)}x`;
  return { name, unit, against, ...measured, ratio, bar, holds: ratio >= minRatio };
}

/** A row whose bar is a smallest rate, whatever the reference says. */
export function floorRow(
  name: string,
  unit: string,
  against: string,
  measured: { ours: number; reference: number },
  floor: number,
): BenchRow {
  const ratio = measured.ours / measured.reference;
  const bar = `at least ${floor} ${unit}`;
  return { name, unit, against, ...measured, ratio, bar, holds: measured.ours >= floor };
}
