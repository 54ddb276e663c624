/** Differences of each headline figure between two sets of reports. Pure. */
import { counted } from '../report/html/text.ts';
import type { Report } from '../report/report.ts';
import { HEADLINE_FIGURES, type HeadlineFigure } from './headline-figures.ts';
import { comparePairs, type Difference } from './paired.ts';

export type ComparedFigure = {
  figure: HeadlineFigure;
  /** Null if fewer than two pairs have the figure. */
  difference: Difference | null;
};

/** `name`: for readers. `path`: file or folder. */
export type ComparedSide = { name: string; path: string };

export type Comparison = {
  a: ComparedSide;
  b: ComparedSide;
  /** Size of the runs and their common scenario or weight policy, as a sentence without its end. */
  runs: string;
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

/** Returns the size of the runs, and the scenario and the weight policy of both sides. */
export function runsOf({ a, b }: { a: Report; b: Report }): string {
  const { days, providers, renters } = a.run;
  const shared = (name: string, left: string, right: string): string =>
    left === right ? `${name} ${left} on both sides` : `${name} ${left} in A and ${right} in B`;
  return [
    `Runs of ${counted(days, 'day')} with ${counted(providers, 'provider')} and ${counted(renters, 'renter')}`,
    shared('scenario', a.scenario.name, b.scenario.name),
    shared('weight policy', a.weight_policy.name, b.weight_policy.name),
  ].join(', ');
}
