/** Sections about providers: income, and weights against quality. Pure. */
import type { Report, WeighedHost } from '../report.ts';
import { gini, mean, quantile, rankCorrelation, sum } from '../statistics.ts';
import type { Section } from './section.ts';
import { curveChart, type Point, scatterChart } from './svg.ts';
import { counted, exactUsd, number, percent } from './text.ts';

const TOP_SHARE = 0.1;

export function providerSections(report: Pick<Report, 'incomes_usd' | 'weights'>): Section[] {
  return [incomes(report.incomes_usd), weights(report.weights)];
}

function incomes(ascending: readonly number[]): Section {
  const total = sum(ascending);
  const top = ascending.slice(-Math.max(1, Math.round(ascending.length * TOP_SHARE)));
  const none = ascending.filter((income) => income === 0).length;
  let earned = 0;
  const curve = ascending.map((income, index): Point => {
    earned += income;
    return [(index + 1) / ascending.length, total === 0 ? 0 : earned / total];
  });
  const shares = [0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1];
  return {
    id: 'income',
    finding:
      total === 0
        ? 'No provider earned anything'
        : `The best tenth of the providers earned ${percent(sum(top) / total)} of all income, and ${counted(none, 'provider')} earned nothing`,
    note: 'Share of all income from rentals that the providers with the lowest incomes earned together. If all earned the same, the first line would follow the second. Rewards by weight are not included.',
    svg:
      total === 0
        ? null
        : curveChart(
            [
              { name: 'providers', points: [[0, 0], ...curve] },
              {
                name: 'equal incomes',
                points: [
                  [0, 0],
                  [1, 1],
                ],
              },
            ],
            { label: 'share of the providers, lowest income first', format: percent },
            { label: 'share of the income', format: percent },
          ),
    legend: ['providers', 'equal incomes'],
    table: {
      head: ['Share of the providers', 'Earn at most'],
      rows: [
        ...shares.map((share) => [percent(share), exactUsd(quantile(ascending, share) ?? 0)]),
        ['mean', exactUsd(mean(ascending) ?? 0)],
        ['Gini coefficient (0: all equal)', number(gini(ascending))],
      ],
    },
  };
}

const HONEST = 'honest';
const SELF_RENTING = 'rented by its provider';

/** Returns the id of a cheat, or one of the two kinds of hosts that do not cheat. */
const kindOf = ({ cheat, rents_itself: rentsItself }: WeighedHost): string =>
  cheat ?? (rentsItself ? SELF_RENTING : HONEST);

/** Weight of a host relative to its share of the rates of all GPUs: 1 is average. */
const relative = ({ weight_share: weight, value_share: value }: WeighedHost): number =>
  value === 0 ? 0 : weight / value;

function weights(hosts: readonly WeighedHost[]): Section {
  const honest = hosts.filter((host) => kindOf(host) === HONEST);
  const cheats = hosts.filter(({ cheat }) => cheat !== null);
  const selfRenting = hosts.filter((host) => kindOf(host) === SELF_RENTING);
  const correlation = rankCorrelation(honest.map((host) => [host.quality, relative(host)]));
  const cheated = sum(cheats.map(({ weight_share: share }) => share));
  const offered = sum(cheats.map(({ value_share: share }) => share));
  const relation =
    correlation === null
      ? ''
      : `; among honest hosts, the rank correlation of weight and quality is ${number(correlation)}`;
  const points = (group: readonly WeighedHost[]) =>
    group.map((host) => [host.quality, relative(host)] as const);
  return {
    id: 'weights',
    finding:
      hosts.length === 0
        ? 'No weights were computed'
        : cheats.length === 0
          ? `No host cheated${relation}`
          : `Cheats had ${percent(cheated)} of the weight and ${percent(offered)} of the offered GPUs${relation}`,
    note: 'Newest weights. Quality is the share of its time in which a host did what it offers; it is 0 for hosts that cheat. Relative weight is the share of the weight of all hosts, divided by the share of the rates of all GPUs: 1 is average. Weight also depends on fees, so rented hosts have more.',
    svg:
      hosts.length === 0
        ? null
        : scatterChart(
            [
              { name: 'honest', points: points(honest) },
              { name: 'cheats', points: points(cheats) },
              { name: 'self-renting', points: points(selfRenting) },
            ],
            { label: 'true quality', format: percent, atLeast: 1 },
            { label: 'relative weight', format: number, atLeast: 1 },
          ),
    legend: ['honest hosts', 'hosts that cheat', 'hosts that their provider rents'],
    table: {
      head: ['Hosts', 'Number', 'Share of the weight', 'Share of the offered GPUs by rate'],
      rows: [
        ...[...Map.groupBy(hosts, kindOf)]
          .toSorted(([a], [b]) => (a < b ? -1 : 1))
          .map(([kind, group]) => [
            kind,
            String(group.length),
            percent(sum(group.map(({ weight_share: share }) => share))),
            percent(sum(group.map(({ value_share: share }) => share))),
          ]),
      ],
    },
  };
}
