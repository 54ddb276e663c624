/** A comparison as a table of text, and its verdicts in words. Pure. */
import type { Table } from '../report/html/section.ts';
import type { ComparedFigure, ComparedSide, Comparison, SeedValues } from './comparison.ts';
import { type Difference, isClear, isEqual } from './paired.ts';

export const COMPARED_HEAD = ['Figure', 'A', 'B', 'B - A', '95 % interval', 'Verdict'];

export const METHOD = (seeds: number): string =>
  `Paired by seed: both sides ran with the same ${seeds} seeds. Columns A and B are means over the seeds; a share is the mean of the runs’ shares. The interval is the paired t interval of the mean difference. A difference is certain if its interval excludes zero; if two policies did not differ in any of 20 varying figures, one would still be expected to look certain.`;

/** Returns the cells of a row. */
export function comparedCells({ figure, difference }: ComparedFigure): string[] {
  if (difference === null) return [figure.name, '-', '-', '-', '-', 'not measured'];
  const { meanA, meanB, mean } = difference;
  const format = figure.formatDifference ?? figure.format;
  return [
    figure.name,
    figure.format(meanA),
    figure.format(meanB),
    ...(isEqual(difference) ? ['-', '-'] : [format(mean), intervalOf({ figure, difference })]),
    verdictOf({ figure, difference }),
  ];
}

/** Returns the table of the values of each seed: a row for each side, or one row if both sides are equal. */
export function seedTable(rows: readonly ComparedFigure[], seeds: readonly number[]): Table {
  return {
    head: ['Figure', 'Side', ...seeds.map((seed) => `Seed ${seed}`)],
    rows: rows.flatMap(({ figure, values }) => {
      const shown = (value: number | null | undefined): string =>
        value === null || value === undefined ? '-' : figure.format(value);
      const row = (side: string, valueIn: (of: SeedValues) => number | null): string[] => [
        figure.name,
        side,
        ...seeds.map((seed) => {
          const of = values.find((each) => each.seed === seed);
          return shown(of && valueIn(of));
        }),
      ];
      return values.every(({ a, b }) => a === b)
        ? [row('A and B', ({ a }) => a)]
        : [row('A', ({ a }) => a), row('B', ({ b }) => b)];
    }),
  };
}

type Measured = Pick<ComparedFigure, 'figure'> & { difference: Difference };

function intervalOf({ figure, difference: { low, high } }: Measured): string {
  const { format, formatInterval } = figure;
  return formatInterval?.(low, high) ?? `${format(low)} to ${format(high)}`;
}

function verdictOf({ figure, difference }: Measured): string {
  if (isEqual(difference)) return 'equal with every seed';
  if (!isClear(difference)) return 'not certain';
  const direction = difference.mean > 0 ? 'higher' : 'lower';
  if (figure.better === undefined) return `B is ${direction}`;
  return figure.better === direction ? 'B is better' : 'B is worse';
}

/** Returns the verdict about a figure as a sentence, with the names of both sides. */
export function verdictSentence(
  compared: ComparedFigure,
  a: ComparedSide,
  b: ComparedSide,
): string {
  const { figure, difference } = compared;
  if (difference === null) return `${figure.name}: not measured with two seeds or more.`;
  const { meanA, meanB, mean } = difference;
  const values = `${figure.format(meanA)} with ${a.name}, ${figure.format(meanB)} with ${b.name}`;
  if (isEqual(difference)) return `${figure.name}: equal, ${figure.format(meanA)}.`;
  const interval = `95 % interval of the difference: ${intervalOf({ figure, difference })}`;
  if (!isClear(difference)) {
    return `${figure.name}: a difference is not certain, because the interval includes zero. ${values}; ${interval}.`;
  }
  const direction = mean > 0 ? 'higher' : 'lower';
  const judgement =
    figure.better === undefined
      ? `${direction} with ${b.name}`
      : `${figure.better === direction ? 'better' : 'worse'} (${direction}) with ${b.name}`;
  return `${figure.name}: ${judgement}. ${values}; ${interval}.`;
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
  const sides = [`A: ${a.name} (${a.path})`, `B: ${b.name} (${b.path})`];
  return [...sides, '', ...lines, '', METHOD(seeds.length), ''].join('\n');
}
