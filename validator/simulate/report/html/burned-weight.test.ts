import { describe, expect, it } from 'vitest';
import { burnedParts, burnedReasons, burnedTable } from './burned-weight.ts';

type Sources = Parameters<typeof burnedTable>[0];
type Epoch = Sources['emission']['epochs'][number];

const FULL: Epoch = {
  from_hours: 30,
  hours: 10,
  rented_pool: { share: 0.7, hosts: 3 },
  idle_pool: { share: 0.2, hosts: 2 },
};
const WITHOUT_RENTED: Epoch = {
  ...FULL,
  from_hours: 6,
  hours: 24,
  rented_pool: { share: 0, hosts: 0 },
};
/** The policy burns a tenth, and shares 70 % and 20 % in full. */
const IN_FULL = { name: 'old', burn_share: 0.1, rented_share: 0.7, idle_share: 0.2 };

function sourcesOf(
  epochs: Epoch[],
  terms: { fee_return: number | null; idle_rate: number | null },
) {
  const hours = epochs.reduce((sum, epoch) => sum + epoch.hours, 0);
  const shareOf = ({ rented_pool: rented, idle_pool: idle }: Epoch) => rented.share + idle.share;
  const rewards = epochs.reduce((sum, each) => sum + each.hours * 100 * shareOf(each), 0);
  return {
    emission: {
      hours,
      hours_before: 6,
      emitted_usd: hours * 100,
      rewards_usd: rewards,
      burned_usd: hours * 100 - rewards,
      newest_burned_share: 0.1,
      epochs,
    },
    weight_policy: { ...IN_FULL, ...terms },
    scenario: { weights_worth_usd_per_hour: 100 } as Sources['scenario'],
  };
}

describe('weight that was burned', () => {
  it('is that of the policy, and of a pool while no host earns from it', () => {
    const sources = sourcesOf([WITHOUT_RENTED, FULL], { fee_return: null, idle_rate: null });
    const parts = burnedParts(sources).map(({ name, burned }) => [name, Math.round(burned)]);
    expect(parts).toEqual([
      ['the part that no host can earn', 340],
      ['the pool of rented hosts', 1_680],
      ['the pool of idle hosts', 0],
    ]);
    expect(burnedReasons(sources)[1]).toBe(
      'Of the pool of rented hosts, $1,680.00 were burned: for 24 h (day 1, 06:00 to day 2, 06:00) no host earned, because the inspections on which these weights depend had met no rented host that earns.',
    );
    expect(burnedTable(sources).rows.at(-1)).toEqual([
      'all',
      '-',
      '$1,380.00 (40.6 %)',
      '$2,020.00 (59.4 %)',
    ]);
  });

  it('names the time before renters paid fees with their own money', () => {
    const first = { ...WITHOUT_RENTED, idle_pool: { share: 0.001, hosts: 2 } };
    const second = { ...first, from_hours: 30 };
    const sources = sourcesOf([first, second], { fee_return: 0.5, idle_rate: 0.01 });
    expect(burnedReasons(sources)[1]).toBe(
      'Of the pool of rented hosts, $3,360.00 were burned: rented hosts earn 50 % of the fees that renters paid with their own money, which is less than the pool; for 2 days (day 1, 06:00 to day 3, 06:00) no host earned, because no such fee counted for these weights.',
    );
  });

  it('is what hosts earn less than their pools', () => {
    const earned = { ...FULL, rented_pool: { share: 0.001, hosts: 3 } };
    const sources = sourcesOf([earned], { fee_return: 0.5, idle_rate: 0.01 });
    expect(burnedReasons(sources)[1]).toBe(
      'Of the pool of rented hosts, $699.00 were burned: rented hosts earn 50 % of the fees that renters paid with their own money, which is less than the pool.',
    );
  });

  it('differs by the rounding of weights to whole numbers', () => {
    const sources = sourcesOf([FULL], { fee_return: null, idle_rate: null });
    const rounded = { ...sources.emission, rewards_usd: 902, burned_usd: 98 };
    const { rows } = burnedTable({ ...sources, emission: rounded });
    expect(rows).toContainEqual(['rounding of weights', '-', '$2.00', '-$2.00']);
  });
});
