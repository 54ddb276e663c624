/** Rows of one resolution, stored by column, and their aggregation into coarser rows. Pure. */
import { type Column, columnsFor, PER_GPU, SUMMARY_COLUMNS } from './figures.ts';

/** Rows in ascending order of `at`. Intervals without a sample have no row. */
export type Tier = {
  /** Number of the row's interval since the epoch, in units of the tier's resolution. */
  at: number[];
  /** Number of samples in the row. */
  samples: number[];
  /** One array of codes per column. */
  cells: number[][];
};

export function emptyTier(gpus: number): Tier {
  return { at: [], samples: [], cells: columnsFor(gpus).map(() => []) };
}

export function addRow(tier: Tier, at: number, codes: readonly number[]): void {
  tier.at.push(at);
  tier.samples.push(1);
  tier.cells.forEach((column, index) => void column.push(codes[index] ?? 0));
}

/** Returns the rows whose `at` is at least `first`. */
export function rowsFrom(tier: Tier, first: number): Tier {
  const index = indexOf(tier, first);
  return {
    at: tier.at.slice(index),
    samples: tier.samples.slice(index),
    cells: tier.cells.map((column) => column.slice(index)),
  };
}

/** Returns the rows whose `at` is below `end`. */
export function rowsBefore(tier: Tier, end: number): Tier {
  const index = indexOf(tier, end);
  return {
    at: tier.at.slice(0, index),
    samples: tier.samples.slice(0, index),
    cells: tier.cells.map((column) => column.slice(0, index)),
  };
}

/** Index of the first row whose `at` is at least `first`. */
function indexOf({ at }: Tier, first: number): number {
  const index = at.findIndex((each) => each >= first);
  return index === -1 ? at.length : index;
}

/** Joins two tiers. The rows of `newer` replace all rows of `older` from the first row of `newer` on. */
export function joined(older: Tier, newer: Tier): Tier {
  const [first] = newer.at;
  const kept = first === undefined ? older : rowsBefore(older, first);
  return {
    at: [...kept.at, ...newer.at],
    samples: [...kept.samples, ...newer.samples],
    cells: kept.cells.map((column, index) => [...column, ...(newer.cells[index] ?? [])]),
  };
}

/** Returns the tier with the columns of the GPUs `to` instead of `from`; values of added GPUs are unknown. */
export function arranged(tier: Tier, from: readonly string[], to: readonly string[]): Tier {
  const cells = columnsFor(to.length).map((_, column) => {
    if (column < SUMMARY_COLUMNS) return tier.cells[column] ?? [];
    const place = from.indexOf(to[Math.floor((column - SUMMARY_COLUMNS) / PER_GPU)] ?? '');
    const own = SUMMARY_COLUMNS + place * PER_GPU + ((column - SUMMARY_COLUMNS) % PER_GPU);
    return (place === -1 ? undefined : tier.cells[own]) ?? tier.at.map(() => 0);
  });
  return { ...tier, cells };
}

/** Aggregates rows into intervals of `size` rows each. */
export function rolledUp(tier: Tier, size: number, gpus: number): Tier {
  const columns = columnsFor(gpus);
  const rolled: Tier = emptyTier(gpus);
  for (let begin = 0; begin < tier.at.length; ) {
    const at = Math.floor((tier.at[begin] ?? 0) / size);
    let end = begin + 1;
    while (end < tier.at.length && Math.floor((tier.at[end] ?? 0) / size) === at) end += 1;
    rolled.at.push(at);
    rolled.samples.push(tier.samples.slice(begin, end).reduce((sum, count) => sum + count, 0));
    columns.forEach((column, index) => {
      rolled.cells[index]?.push(aggregated(column, tier.cells[index] ?? [], begin, end));
    });
    begin = end;
  }
  return rolled;
}

/** Aggregates codes. Unknown values are left out; the result is unknown if all values are unknown. */
export function aggregated(
  { scale, statistic }: Column,
  codes: readonly number[],
  begin: number,
  end: number,
): number {
  let sum = 0;
  let known = 0;
  let least = 0;
  let most = 0;
  for (let index = begin; index < end; index += 1) {
    const code = codes[index] ?? 0;
    if (code === 0) continue;
    known += 1;
    sum += scale.decode(code);
    least = least === 0 ? code : Math.min(least, code);
    most = Math.max(most, code);
  }
  if (known === 0) return 0;
  if (statistic === 'min') return least;
  return statistic === 'max' ? most : scale.encode(sum / known);
}
