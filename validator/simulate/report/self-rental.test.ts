import { expect, it } from 'vitest';
import { compareSelfRental } from './self-rental.ts';

const HOST = {
  gpu: 'H100',
  strategy: 'fixed',
  cheat: null,
  quality: 1,
  weight_share: 0.25,
  value_share: 0.25,
  rents_itself: false,
  income_usd: 20,
  own_rentals_usd: 0,
  reward_usd: 4,
};
const HOURS = 48;

it('compares what both groups keep a day, with the same GPUs', () => {
  const self = { ...HOST, rents_itself: true, income_usd: 95, own_rentals_usd: 100, reward_usd: 8 };
  // Twice the GPUs of the other host: its amounts are halved.
  const honest = { ...HOST, value_share: 0.5 };
  const cheat = { ...HOST, cheat: 'clock', reward_usd: 1_000 };
  expect(compareSelfRental([self, honest, cheat], HOURS)).toEqual({
    self: {
      hosts: 1,
      weightShare: 0.25,
      valueShare: 0.25,
      income: 47.5,
      ownRentals: 50,
      rewards: 4,
      kept: 1.5,
    },
    honest: {
      hosts: 1,
      weightShare: 0.25,
      valueShare: 0.5,
      income: 5,
      ownRentals: 0,
      rewards: 1,
      kept: 6,
    },
  });
});

it('has no comparison without such a provider', () => {
  expect(compareSelfRental([HOST], HOURS)).toBeNull();
});
