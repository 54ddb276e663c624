/** Statistics of lists of numbers. Pure. */

export const sum = (values: readonly number[]): number =>
  values.reduce((before, value) => before + value, 0);

/** Returns null without a whole. */
export const ratio = (part: number, whole: number): number | null =>
  whole === 0 ? null : part / whole;

/** Returns null for an empty list. */
export const mean = (values: readonly number[]): number | null =>
  values.length === 0 ? null : sum(values) / values.length;

/** Nearest-rank quantile of an ascending list, `share` in [0, 1]; null for an empty list. */
export function quantile(ascending: readonly number[], share: number): number | null {
  const index = Math.ceil(share * ascending.length) - 1;
  return ascending[Math.min(Math.max(index, 0), ascending.length - 1)] ?? null;
}

export const ascending = (values: readonly number[]): number[] => values.toSorted((a, b) => a - b);

/** Gini coefficient of an ascending list of amounts: 0 if all are equal, near 1 if one has everything. */
export function gini(amounts: readonly number[]): number {
  const total = sum(amounts);
  if (total <= 0) return 0;
  const ranked = sum(amounts.map((amount, index) => (index + 1) * amount));
  return (2 * ranked) / (amounts.length * total) - (amounts.length + 1) / amounts.length;
}

/** Spearman's rank correlation of pairs; null with fewer than three pairs, or if one side is constant. */
export function rankCorrelation(pairs: readonly (readonly [number, number])[]): number | null {
  if (pairs.length < 3) return null;
  const [left, right] = [ranksOf(pairs.map(([a]) => a)), ranksOf(pairs.map(([, b]) => b))];
  const middle = (pairs.length + 1) / 2;
  const covariance = sum(
    left.map((rank, index) => (rank - middle) * ((right[index] ?? 0) - middle)),
  );
  const spread = (ranks: readonly number[]) => sum(ranks.map((rank) => (rank - middle) ** 2));
  const scale = Math.sqrt(spread(left) * spread(right));
  return scale === 0 ? null : covariance / scale;
}

/** Ranks from 1; equal values share the mean of their ranks. */
function ranksOf(values: readonly number[]): number[] {
  const order = values.map((value, index) => ({ value, index })).sort((a, b) => a.value - b.value);
  const ranks = new Array<number>(values.length).fill(0);
  for (let from = 0; from < order.length; ) {
    let to = from;
    while (to < order.length && order[to]?.value === order[from]?.value) to += 1;
    for (let at = from; at < to; at += 1) ranks[order[at]?.index ?? 0] = (from + to + 1) / 2;
    from = to;
  }
  return ranks;
}
