/** Sections about providers: income, and weights against quality. Pure. */
import type { Report } from '../report.ts';
import { gini, mean, quantile, rankCorrelation, sum } from '../statistics.ts';
import type { WeighedHost } from '../weight-schemas.ts';
import type { Section } from './section.ts';
import { curveChart, type Point, scatterChart } from './svg.ts';
import { counted, number, percent, usd, whole } from './text.ts';
import { cheatWords, strategyWords } from './words.ts';

const TOP_SHARE = 0.1;

export function providerSections(
  report: Pick<Report, 'incomes_usd' | 'weights' | 'emission'>,
): Section[] {
  return [incomes(report.incomes_usd, report.weights), weights(report)];
}

/** Income of the hosts of one price strategy in USD. */
type Earned = {
  strategy: string;
  hosts: number;
  valueShare: number;
  income: number;
  share: number;
};

/** Returns the strategies of a market, the one that earned most for its GPUs first. */
function earnedByStrategy(hosts: readonly WeighedHost[]): Earned[] {
  const total = sum(hosts.map(({ income_usd: income }) => income));
  return [...Map.groupBy(hosts, ({ strategy }) => strategy)]
    .map(([strategy, group]) => {
      const income = sum(group.map((host) => host.income_usd));
      const share = total === 0 ? 0 : income / total;
      return { strategy, hosts: group.length, valueShare: rateShareOf(group), income, share };
    })
    .toSorted((a, b) => b.share * a.valueShare - a.share * b.valueShare);
}

function strategyTable(earned: readonly Earned[]): Pick<Section, 'openTables'> {
  if (earned.length < 2) return {};
  const head = [
    'Providers that …',
    'Strategy',
    'Hosts',
    'Share of the offered GPUs by rate',
    'Income',
    'Share of the income',
  ];
  const rows = earned.map((each) => [
    strategyWords(each.strategy),
    each.strategy,
    whole(each.hosts),
    percent(each.valueShare),
    usd(each.income),
    percent(each.share),
  ]);
  return { openTables: [{ caption: 'Income by price strategy', table: { head, rows } }] };
}

function incomes(ascending: readonly number[], hosts: readonly WeighedHost[]): Section {
  const strategies = earnedByStrategy(hosts);
  const [best] = strategies;
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
        : `The best tenth of the providers earned ${percent(sum(top) / total)} of all income, and ${counted(none, 'provider')} earned nothing${
            best === undefined || strategies.length < 2
              ? ''
              : `; providers that ${strategyWords(best.strategy)} earned ${percent(best.share)} with ${percent(best.valueShare)} of the GPUs by rate`
          }`,
    notes: [
      'Share of all income from rentals that the providers with the lowest incomes earned together. If all earned the same, the first line would follow the second. Rewards by weight are not included. Shares of GPUs “by rate” count each GPU with the hourly rate of its model in the weight policy.',
    ],
    plot:
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
            {
              x: { label: 'share of the providers, lowest income first', format: percent },
              y: { label: 'share of the income', format: percent },
            },
          ),
    legend: ['providers', 'equal incomes'],
    ...strategyTable(strategies),
    table: {
      head: ['Share of the providers', 'Earn at most'],
      rows: [
        ...shares.map((share) => [percent(share), usd(quantile(ascending, share) ?? 0)]),
        ['mean', usd(mean(ascending) ?? 0)],
        [
          'Gini coefficient (0: all earn the same; near 1: one earns everything)',
          number(gini(ascending)),
        ],
      ],
    },
  };
}

const HONEST = 'honest';
const SELF_RENTING = 'rented by its provider';

/** Returns the words of a cheat, or one of the two kinds of hosts that do not cheat. */
function kindOf({ cheat, rents_itself: rentsItself }: WeighedHost): string {
  if (cheat !== null) return `cheat: ${cheatWords(cheat)}`;
  return rentsItself ? SELF_RENTING : HONEST;
}

/** Weight of a host relative to its share of the rates of all GPUs: 1 is average. */
const relative = ({ weight_share: weight, value_share: value }: WeighedHost): number =>
  value === 0 ? 0 : weight / value;

/** Correlations from which weight follows quality closely, and at all. */
const CLOSE = 0.7;
const WEAK = 0.3;

/** Returns the meaning of a rank correlation of weight and quality. */
function judgementOf(correlation: number): string {
  if (correlation >= CLOSE) return 'weight follows quality closely';
  if (correlation >= WEAK) return 'weight follows quality in part';
  return correlation > -WEAK ? 'weight depends little on quality' : 'better hosts have less weight';
}

const CORRELATION_NOTE =
  'The rank correlation is 1 if the better of two honest hosts always has more weight, 0 if weight and quality are unrelated, and -1 if the better host always has less. In a short run nearly all honest hosts are available nearly always, and weight depends on rentals, so a value near 0 is expected and not a defect. A value below -0.3 would be one.';

function weights({ weights: hosts, emission }: Pick<Report, 'weights' | 'emission'>): Section {
  const honest = hosts.filter((host) => kindOf(host) === HONEST);
  const cheats = hosts.filter(({ cheat }) => cheat !== null);
  const selfRenting = hosts.filter((host) => kindOf(host) === SELF_RENTING);
  const correlation = rankCorrelation(honest.map((host) => [host.quality, relative(host)]));
  const relation =
    correlation === null
      ? ''
      : `; among honest hosts ${judgementOf(correlation)} (rank correlation ${number(correlation)})`;
  const groups = [
    { name: 'honest hosts', hosts: honest },
    { name: 'hosts that cheat', hosts: cheats },
    { name: 'hosts that their provider rents', hosts: selfRenting },
  ].filter((group) => group.hosts.length > 0);
  return {
    id: 'weights',
    finding:
      hosts.length === 0
        ? 'No weights were computed'
        : cheats.length === 0
          ? `No host of this run cheated${relation}`
          : `Hosts that cheat had ${percent(weightOf(cheats))} of the weight of all hosts and ${percent(rateShareOf(cheats))} of the offered GPUs${relation}`,
    notes: [
      `Newest weights of the run. Shares are of the weight that hosts got; ${percent(emission.newest_burned_share)} of all weight went to no host and was burned. Quality is the share of its time in which a host did what it offers; it is 0 for hosts that cheat. Relative weight is the share of the weight of all hosts, divided by the share of the rates of all GPUs: 1 is average. Weight also depends on fees. Weights are whole numbers of 65,535 together, so the weights of hosts are coarse if nearly all weight is burned: then most hosts have the smallest weight, and shares, rewards and the rank correlation mostly count hosts.`,
      ...(correlation === null ? [] : [CORRELATION_NOTE]),
    ],
    plot:
      hosts.length === 0
        ? null
        : scatterChart(
            groups.map(({ name, hosts: group }) => ({
              name,
              points: group.map((host) => [host.quality, relative(host)] as const),
            })),
            {
              x: { label: 'true quality', format: percent, atLeast: 1 },
              y: { label: 'relative weight', format: number, atLeast: 1 },
            },
          ),
    legend: groups.map(({ name }) => name),
    hasMarks: true,
    table: {
      head: [
        'Hosts',
        'Number',
        'Share of the weight of all hosts',
        'Share of the offered GPUs by rate',
      ],
      rows: [...Map.groupBy(hosts, kindOf)]
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
        .map(([kind, group]) => [
          kind,
          whole(group.length),
          percent(weightOf(group)),
          percent(rateShareOf(group)),
        ]),
    },
  };
}

const weightOf = (hosts: readonly WeighedHost[]): number =>
  sum(hosts.map(({ weight_share: share }) => share));

const rateShareOf = (hosts: readonly WeighedHost[]): number =>
  sum(hosts.map(({ value_share: share }) => share));
