/** Differences of each headline figure between two sets of reports. Pure. */
import type { Report } from '../report/report.ts';
import { HEADLINE_FIGURES, type HeadlineFigure } from './headline-figures.ts';
import { comparePairs, type Difference } from './paired.ts';

export type ComparedFigure = {
  figure: HeadlineFigure;
  /** Null if fewer than two pairs have the figure. */
  difference: Difference | null;
};

export type Comparison = {
  /** Paths of both sides. */
  a: string;
  b: string;
  seeds: readonly number[];
  rows: readonly ComparedFigure[];
};

/** Each pair has the same seed. */
export function compareReports(pairs: readonly { a: Report; b: Report }[]): ComparedFigure[] {
  return HEADLINE_FIGURES.map((figure) => {
    const values = pairs.flatMap(({ a, b }) => {
      const [left, right] = [figure.valueIn(a), figure.valueIn(b)];
      return left === null || right === null ? [] : [[left, right] as const];
    });
    return { figure, difference: values.length < 2 ? null : comparePairs(values) };
  });
}
