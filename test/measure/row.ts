/** One line of `npm run bench` or `npm run soak`: a measured value, its reference if it has one, and its limit. */

export type Row = {
  name: string;
  unit: string;
  ours: number;
  /** Value of the reference, measured in the same run. Null for a row that has none. */
  reference: number | null;
  /** Description of the reference, for readers. */
  against: string | null;
  /** `ours` divided by `reference`; null without a reference. */
  ratio: number | null;
  /** Description of the limit, for readers. */
  bar: string;
  holds: boolean;
};

type Measured = { ours: number; reference: number };

/** A value and the time of its measurement. */
export type Sample = { atMs: number; value: number };

/** Row with a maximum ratio to the reference. */
export function ratioAtMost(
  name: string,
  unit: string,
  against: string,
  measured: Measured,
  limit: number,
): Row {
  const bar = `at most ${limit.toFixed(2)}x`;
  return compared(name, unit, against, measured, bar, (ratio) => ratio <= limit);
}

/** Row with a minimum ratio to the reference: for rates, where more is better. */
export function ratioAtLeast(
  name: string,
  unit: string,
  against: string,
  measured: Measured,
  limit: number,
): Row {
  const bar = `at least ${limit.toFixed(2)}x`;
  return compared(name, unit, against, measured, bar, (ratio) => ratio >= limit);
}

/** Row with a maximum value; the reference is shown beside it. */
export function valueAtMost(
  name: string,
  unit: string,
  against: string,
  measured: Measured,
  limit: number,
): Row {
  const bar = `at most ${limit} ${unit}`;
  return compared(name, unit, against, measured, bar, () => measured.ours <= limit);
}

/** Row with a minimum value; the reference is shown beside it. */
export function valueAtLeast(
  name: string,
  unit: string,
  against: string,
  measured: Measured,
  limit: number,
): Row {
  const bar = `at least ${limit} ${unit}`;
  return compared(name, unit, against, measured, bar, () => measured.ours >= limit);
}

/** Row of a long run, with a maximum value and no reference. */
export function figureAtMost(name: string, ours: number, unit: string, limit: number): Row {
  return finding(name, ours, unit, `at most ${limit} ${unit}`, ours <= limit);
}

/** Row whose limit is a condition that the run itself has checked. */
export function finding(
  name: string,
  ours: number,
  unit: string,
  bar: string,
  holds: boolean,
): Row {
  return { name, unit, ours, reference: null, against: null, ratio: null, bar, holds };
}

function compared(
  name: string,
  unit: string,
  against: string,
  measured: Measured,
  bar: string,
  isMet: (ratio: number) => boolean,
): Row {
  const ratio = measured.ours / measured.reference;
  return { name, unit, against, ...measured, ratio, bar, holds: isMet(ratio) };
}

/** Middle value; the mean of the two middle values of an even count. NaN for no values. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/**
 * Growth per `perMs`: the median of the slopes between all pairs of samples (Theil–Sen). A least-squares line would
 * follow the peaks that garbage collection leaves.
 */
export function growth(samples: readonly Sample[], perMs: number): number {
  const slopes = samples.flatMap((from, index) =>
    samples.slice(index + 1).map((to) => (to.value - from.value) / (to.atMs - from.atMs)),
  );
  return median(slopes) * perMs;
}
