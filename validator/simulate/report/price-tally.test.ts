import { expect, it } from 'vitest';
import { createPriceTally } from './price-tally.ts';

const added = (executor: string, strategy: string, change: object = {}) => ({
  kind: 'node-added',
  executor,
  gpu: 'a',
  gpus: 2,
  strategy,
  price_uusd: 1_000_000,
  ...change,
});

it('counts price changes, and the hosts that reached the floor or the ceiling', () => {
  const tally = createPriceTally();
  tally.record(added('e1', 'war'));
  tally.record(added('e2', 'war', { gpus: 6, price_uusd: 320_000 }));
  tally.record(added('e3', 'undercut'));
  tally.record({ kind: 'price', executor: 'e1', price_uusd: 310_000, code: null });
  // A floor of 9.6 cents is reached as 10 cents. The later rise does not change that.
  tally.record({ kind: 'price', executor: 'e2', price_uusd: 100_000, code: null });
  tally.record({ kind: 'price', executor: 'e2', price_uusd: 160_000, code: null });
  tally.record({ kind: 'price', executor: 'e3', price_uusd: 2_000_000, code: null });
  tally.record({ kind: 'price', executor: 'e3', price_uusd: 100_000, code: 'conflict' });
  const [undercut, war] = tally.prices().strategies;
  expect(undercut).toEqual({
    strategy: 'undercut',
    hosts: 1,
    changes: 1,
    mean_share: 2,
    lowest_share: 1,
    reached_floor: 0,
    reached_ceiling: 1,
  });
  expect(war).toMatchObject({ hosts: 2, changes: 3, reached_floor: 1, reached_ceiling: 0 });
  expect(war?.mean_share).toBeCloseTo((0.31 + 0.5) / 2);
  expect(war?.lowest_share).toBeCloseTo(0.31);
});

it('has the mean price of all GPUs of a model', () => {
  const tally = createPriceTally();
  tally.record(added('e1', 'fixed'));
  tally.record(added('e2', 'fixed', { gpus: 6, price_uusd: 2_000_000 }));
  expect(tally.meanUsd('a')).toBe(1.75);
  expect(tally.meanUsd('b')).toBeNull();
});
