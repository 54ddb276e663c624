/** Differences of paired samples with confidence intervals. Pure. */

export type Difference = {
  /** Number of pairs. */
  pairs: number;
  meanA: number;
  meanB: number;
  /** Mean of B minus A, and the ends of its 95 % confidence interval. */
  mean: number;
  low: number;
  high: number;
};

/** 97.5 % quantiles of Student's t distribution for 1 to 30 degrees of freedom. */
const T_975 = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145,
  2.131, 2.12, 2.11, 2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048,
  2.045, 2.042,
];

/** Most pairs for which the quantile is known. */
export const MAX_PAIRS = T_975.length + 1;

/** Compares pairs of one figure by a paired t interval. Throws RangeError for fewer than 2 or more than 31 pairs. */
export function comparePairs(pairs: readonly (readonly [a: number, b: number])[]): Difference {
  const t = T_975[pairs.length - 2];
  if (t === undefined) throw new RangeError(`2 to ${MAX_PAIRS} pairs are compared`);
  const meanA = meanOf(pairs.map(([a]) => a));
  const meanB = meanOf(pairs.map(([, b]) => b));
  const differences = pairs.map(([a, b]) => b - a);
  const mean = meanOf(differences);
  const squares = differences.reduce((sum, each) => sum + (each - mean) ** 2, 0);
  const margin = t * Math.sqrt(squares / (pairs.length - 1) / pairs.length);
  return { pairs: pairs.length, meanA, meanB, mean, low: mean - margin, high: mean + margin };
}

/** Returns true if the figure is equal with every seed. */
export const isEqual = ({ low, high }: Difference): boolean => low === 0 && high === 0;

/** Returns true if the interval excludes zero. */
export const isClear = ({ low, high }: Difference): boolean => low > 0 || high < 0;

const meanOf = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;
