/** Section about the worth of all weight: the rewards of hosts, the burned rest, and the reason. Pure. */
import type { Report } from '../report.ts';
import { sum } from '../statistics.ts';
import type { PolicyTerms, WeighedHost } from '../weight-schemas.ts';
import { barChart } from './bars.ts';
import { burnedParts, burnedReasons, burnedTable } from './burned-weight.ts';
import type { Section } from './section.ts';
import { duration, percent, usd } from './text.ts';

const HOUR_S = 3_600;

export function rewardSection(
  report: Pick<Report, 'emission' | 'weights' | 'weight_policy' | 'scenario'>,
): Section {
  const { emission, weights, weight_policy: policy, scenario } = report;
  const { emitted_usd: emitted, rewards_usd: rewards, burned_usd: burned } = emission;
  const worth = scenario.weights_worth_usd_per_hour;
  const rewardOf = (isCounted: (host: WeighedHost) => boolean): number =>
    sum(weights.filter(isCounted).map(({ reward_usd: reward }) => reward));
  const receivers = [
    {
      label: 'honest hosts',
      value: rewardOf((host) => host.cheat === null && !host.rents_itself),
    },
    { label: 'hosts that cheat', value: rewardOf(({ cheat }) => cheat !== null) },
    { label: 'hosts that their provider rents', value: rewardOf((host) => host.rents_itself) },
    { label: 'burned: went to no host', value: burned, colour: 1 },
  ];
  return {
    id: 'rewards',
    finding:
      emitted === 0
        ? 'No weights were set, so no rewards were paid'
        : `Of ${usd(emitted)} of rewards, hosts got ${usd(rewards)} (${percent(rewards / emitted)}), and ${usd(burned)} (${percent(burned / emitted)}) were burned${mostBurned(report)}`,
    notes: [
      `The scenario takes all weight to be worth ${usd(worth)} an hour. The first weights were set ${duration(emission.hours_before * HOUR_S)} after the start, so ${usd(emitted)} were emitted in the other ${duration(emission.hours * HOUR_S)}.`,
      reasonOf(policy),
      ...(emitted === 0 ? [] : burnedReasons(report)),
    ],
    plot: emitted === 0 ? null : barChart(receivers, { label: 'USD', format: usd }),
    legend: [],
    ...(emitted === 0
      ? {}
      : { openTables: [{ caption: 'Where weight was burned', table: burnedTable(report) }] }),
    table: {
      head: ['Receiver', 'Rewards', 'Share'],
      rows:
        emitted === 0
          ? []
          : receivers.map(({ label, value }) => [label, usd(value), percent(value / emitted)]),
    },
  };
}

/** Names the part of the weight of which most was burned. */
function mostBurned(report: Pick<Report, 'emission' | 'weight_policy' | 'scenario'>): string {
  const [most] = burnedParts(report).toSorted((a, b) => b.burned - a.burned);
  return most === undefined || most.burned <= 0
    ? ''
    : `: most of it, ${usd(most.burned)}, from ${most.name}`;
}

function reasonOf(policy: PolicyTerms): string {
  const { name, fee_return: feeReturn, idle_rate: idleRate } = policy;
  const pools = `${percent(policy.rented_share)} of all weight for rented hosts and ${percent(policy.idle_share)} for idle hosts`;
  if (feeReturn === null || idleRate === null) {
    return `Why: the weight policy ${name} shares its pools in full, ${pools}, however little renters paid. It burns ${percent(policy.burn_share)}, and a pool in the time in which no host earns from it.`;
  }
  return `Why: under the weight policy ${name} a rented host earns ${percent(feeReturn)} of the marketplace’s fee on what its renters paid with their own money, before bonuses and deductions. Credit that was granted does not count. An idle GPU earns ${percent(idleRate)} of its rate. The pools, ${pools}, are only upper limits. The rest is burned, so that nobody gains by renting from oneself: the less renters pay, the more is burned.`;
}
