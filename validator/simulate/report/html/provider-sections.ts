/** Sections about providers: income, weights against quality, and the detection of cheats. Pure. */
import type { Report, WeighedHost } from '../report.ts';
import { gini, mean, quantile, rankCorrelation, sum } from '../statistics.ts';
import type { Section } from './section.ts';
import { barChart, curveChart, type Point, scatterChart } from './svg.ts';
import { counted, duration, exactUsd, number, percent } from './text.ts';

const HOUR_S = 3_600;
const TOP_SHARE = 0.1;

export function providerSections(
  report: Pick<Report, 'incomes_usd' | 'weights' | 'detection'>,
): Section[] {
  return [incomes(report.incomes_usd), weights(report.weights), ...detection(report.detection)];
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

/** Weight of a host relative to its share of the rates of all GPUs: 1 is average. */
const relative = ({ weight_share: weight, value_share: value }: WeighedHost): number =>
  value === 0 ? 0 : weight / value;

function weights(hosts: readonly WeighedHost[]): Section {
  const honest = hosts.filter(({ cheat }) => cheat === null);
  const cheats = hosts.filter(({ cheat }) => cheat !== null);
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
            ],
            { label: 'true quality', format: percent, atLeast: 1 },
            { label: 'relative weight', format: number, atLeast: 1 },
          ),
    legend: ['honest hosts', 'hosts that cheat'],
    table: {
      head: ['Hosts', 'Number', 'Share of the weight', 'Share of the offered GPUs by rate'],
      rows: [
        ...[...Map.groupBy(hosts, ({ cheat }) => cheat ?? '')]
          .toSorted(([a], [b]) => (a < b ? -1 : 1))
          .map(([cheat, group]) => [
            cheat === '' ? 'honest' : cheat,
            String(group.length),
            percent(sum(group.map(({ weight_share: share }) => share))),
            percent(sum(group.map(({ value_share: share }) => share))),
          ]),
      ],
    },
  };
}

function detection({ cheats, honest }: Report['detection']): Section[] {
  const slowest = cheats
    .flatMap(({ cheat, delays_hours: delays }) => {
      const median = quantile(delays, 0.5);
      return median === null ? [] : [{ cheat, median }];
    })
    .toSorted((a, b) => b.median - a.median);
  const missed = cheats.filter(({ found }) => found === 0);
  const [last] = slowest;
  const found =
    last === undefined
      ? 'No cheat was found'
      : `The cheat ${last.cheat} was found last, after ${duration(last.median * HOUR_S)}`;
  const wrong = sum(Object.values(honest.failed_without_fault));
  return [
    {
      id: 'detection',
      finding:
        cheats.length === 0
          ? 'No host of this scenario cheats'
          : `${found}; ${counted(missed.length, 'cheat')} of ${cheats.length} never`,
      note: 'Median time from the first day of a host until its first failed check, by cheat. Cheats that were never found have no bar.',
      svg:
        slowest.length === 0
          ? null
          : barChart(
              slowest.map(({ cheat, median }) => ({ label: cheat, value: median })),
              { label: 'hours until the first failed check', format: number },
            ),
      legend: [],
      table: {
        head: ['Cheat', 'Hosts', 'Found', 'Median delay', 'Longest delay', 'Reasons'],
        rows: cheats.map(({ cheat, hosts, found: count, delays_hours: delays, reasons }) => [
          cheat,
          String(hosts),
          String(count),
          count === 0 ? '-' : duration((quantile(delays, 0.5) ?? 0) * HOUR_S),
          count === 0 ? '-' : duration((delays.at(-1) ?? 0) * HOUR_S),
          Object.keys(reasons).join(', '),
        ]),
      },
    },
    {
      id: 'false-positives',
      finding: `${percent(honest.checks === 0 ? 0 : wrong / honest.checks)} of the ${counted(honest.checks, 'check')} of honest hosts failed without a fault of the host`,
      note: 'Failed checks of honest hosts during a fault, or within six hours after it, are right. All others are false positives.',
      svg:
        wrong === 0
          ? null
          : barChart(
              Object.entries(honest.failed_without_fault).map(([label, value]) => ({
                label,
                value,
              })),
              { label: 'failed checks', format: number },
            ),
      legend: [],
      table: {
        head: ['Checks of honest hosts', 'Number'],
        rows: [
          ['all', String(honest.checks)],
          ['failed in or after a fault', String(honest.failed_in_fault)],
          ...Object.entries(honest.failed_without_fault).map(([reason, count]) => [
            `failed without a fault: ${reason}`,
            String(count),
          ]),
        ],
      },
    },
  ];
}
