/** Differences of each headline figure between two sets of reports. Pure. */
import { counted } from '../report/html/text.ts';
import type { Report } from '../report/report.ts';
import { HEADLINE_FIGURES, type HeadlineFigure } from './headline-figures.ts';
import { comparePairs, type Difference } from './paired.ts';

/** The figure in both runs of a seed; null if the run has no such value. */
export type SeedValues = { seed: number; a: number | null; b: number | null };

export type ComparedFigure = {
  figure: HeadlineFigure;
  values: readonly SeedValues[];
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
    const values = pairs.map(({ a, b }) => ({
      seed: a.run.seed,
      a: figure.valueIn(a),
      b: figure.valueIn(b),
    }));
    const both = values.flatMap(({ a, b }) => (a === null || b === null ? [] : [[a, b] as const]));
    return { figure, values, difference: both.length < 2 ? null : comparePairs(both) };
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
