/** A comparison as a table of text. Pure. */
import type { ComparedFigure, Comparison } from './comparison.ts';
import { isClear, isEqual } from './paired.ts';

export const COMPARED_HEAD = ['Figure', 'A', 'B', 'B - A', '95 % interval', 'Difference'];

export const METHOD = (seeds: number): string =>
  `Paired by seed: both sides ran with the same ${seeds} seeds. The interval is the paired t interval of the mean difference. A difference is clear if its interval excludes zero; of 20 figures without a difference, one is expected to look clear.`;

/** Returns the cells of a row. */
export function comparedCells({ figure, difference }: ComparedFigure): string[] {
  if (difference === null) return [figure.name, '-', '-', '-', '-', 'not measured'];
  const { meanA, meanB, mean, low, high } = difference;
  const interval = `${figure.format(low)} to ${figure.format(high)}`;
  const unclear = isEqual(difference) ? 'equal' : 'not clear';
  const clear = isClear(difference) ? (mean > 0 ? 'B is higher' : 'B is lower') : unclear;
  return [
    figure.name,
    ...[meanA, meanB, mean].map((value) => figure.format(value)),
    interval,
    clear,
  ];
}

export function comparisonText({ a, b, seeds, rows }: Comparison): string {
  const table = [COMPARED_HEAD, ...rows.map(comparedCells)];
  const widths = COMPARED_HEAD.map((_, column) =>
    table.reduce((before, row) => Math.max(before, row[column]?.length ?? 0), 0),
  );
  const lines = table.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  return [`A: ${a}`, `B: ${b}`, '', ...lines, '', METHOD(seeds.length), ''].join('\n');
}
