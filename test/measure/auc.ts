/** Area under the ROC curve with its 95 % interval, by the method of DeLong, DeLong and Clarke-Pearson (1988). */

export type Auc = {
  /** Probability that a case of class 1 has a higher score than a case of class 0. */
  area: number;
  /** Limits of the two-sided 95 % interval. */
  low: number;
  high: number;
};

const NORMAL_95 = 1.959964;

export function aucOf(scores: readonly number[], labels: readonly (0 | 1)[]): Auc {
  const ones = scores.filter((_, at) => labels[at] === 1);
  const zeros = scores.filter((_, at) => labels[at] === 0);
  const placed = ones.map((one) => meanOf(zeros.map((zero) => order(one, zero))));
  const placing = zeros.map((zero) => meanOf(ones.map((one) => order(one, zero))));
  const area = meanOf(placed);
  const error = Math.sqrt(varianceOf(placed) / ones.length + varianceOf(placing) / zeros.length);
  return {
    area,
    low: Math.max(0, area - NORMAL_95 * error),
    high: Math.min(1, area + NORMAL_95 * error),
  };
}

const order = (one: number, zero: number): number => (one > zero ? 1 : one === zero ? 0.5 : 0);

const meanOf = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

function varianceOf(values: readonly number[]): number {
  const mean = meanOf(values);
  return values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1);
}
