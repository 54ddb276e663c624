/** Section about the worth of all weight: the rewards of hosts, the burned rest, and the reason. Pure. */
import type { PolicyTerms, Report, WeighedHost } from '../report.ts';
import { sum } from '../statistics.ts';
import { barChart } from './bars.ts';
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
        : `Of ${usd(emitted)} of rewards, hosts got ${usd(rewards)} (${percent(rewards / emitted)}), and ${usd(burned)} were burned`,
    notes: [
      `The scenario takes all weight to be worth ${usd(worth)} an hour. The first weights were set ${duration(emission.hours_before * HOUR_S)} after the start, so ${usd(emitted)} were emitted in the other ${duration(emission.hours * HOUR_S)}.`,
      reasonOf(policy),
    ],
    plot: emitted === 0 ? null : barChart(receivers, { label: 'USD', format: usd }),
    legend: [],
    table: {
      head: ['Receiver', 'Rewards', 'Share'],
      rows:
        emitted === 0
          ? []
          : receivers.map(({ label, value }) => [label, usd(value), percent(value / emitted)]),
    },
  };
}

function reasonOf(policy: PolicyTerms): string {
  const { name, fee_return: feeReturn, idle_rate: idleRate } = policy;
  const pools = `${percent(policy.rented_share)} of all weight for rented hosts and ${percent(policy.idle_share)} for idle hosts`;
  if (feeReturn === null || idleRate === null) {
    return `Why: the weight policy ${name} shares its pools in full, ${pools}, however little renters paid. It burns ${percent(policy.burn_share)}, and pools without a host that earns.`;
  }
  return `Why: under the weight policy ${name} a rented host earns ${percent(feeReturn)} of the marketplace’s fee on what its renters paid with their own money, before bonuses and deductions. Credit that was granted does not count. An idle GPU earns ${percent(idleRate)} of its rate. The pools, ${pools}, are only upper limits. The rest is burned, so that nobody gains by renting from oneself: the less renters pay, the more is burned.`;
}
