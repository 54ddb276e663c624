import { expect, it } from 'vitest';
import { createTestStore } from '../../test/fakes/scenes/test-evidence-store.ts';
import {
  BURN,
  entryOf,
  goldenPolicy,
  H100,
  hotkey,
  RTX4090,
  rewardPolicy,
  setOf,
} from '../../test/fixtures/cycle-set.ts';
import { computeWeights } from './compute-weights.ts';
import { insertCycle } from './cycle.store.ts';
import type { CycleEntry } from './cycle-set.ts';
import { createRewardEstimates, estimateRewards, type MarketState } from './reward-estimate.ts';
import type { WeightPolicy } from './weight-policy.ts';

const QUESTION = { gpu_model: H100, gpu_count: 2, price_uusd: 2_000_000 };

function marketOf(entries: CycleEntry[]): MarketState {
  const { neurons, validator, embedded } = setOf([entries]);
  return { neurons, validator, embedded, cycle: { number: 3, entries }, before: null };
}

function estimate(
  question = QUESTION,
  entries: CycleEntry[] = [entryOf(2, { rented: true }), entryOf(3)],
  policy: WeightPolicy = goldenPolicy(),
) {
  return estimateRewards(question, marketOf(entries), policy);
}

it('estimates exactly the weight that the node gets after it is added', () => {
  const others = [entryOf(2, { rented: true }), entryOf(3)];
  // An odd count avoids equal remainders of two hotkeys, for which the order of keys would decide who gets the last
  // 1/65,535.
  const own = { hotkey: hotkey(9), gpu_count: 3, collateral: false, price_uusd: 2_000_000 };
  const shares = estimate({ ...QUESTION, gpu_count: 3 });
  for (const rented of [true, false]) {
    const set = setOf([[...others, entryOf(9, { ...own, rented })]]);
    const result = computeWeights(set, goldenPolicy());
    const uid = set.neurons.find((neuron) => neuron.hotkey === own.hotkey)?.uid ?? -1;
    const weight = result?.weights[result.uids.indexOf(uid)] ?? 0;
    expect(weight).toBeGreaterThan(6_000);
    expect(shares[rented ? 'rented' : 'idle']).toBe(weight / 65_535);
  }
});

it('estimates a smaller share if more executors earn, and a whole pool for a single executor', () => {
  expect(estimate(QUESTION, []).rented).toBeCloseTo(0.7, 4);
  expect(estimate(QUESTION, []).idle).toBeCloseTo(0.2, 4);
  const many = Array.from({ length: 9 }, (_, index) => entryOf(index + 2, { rented: true }));
  expect(estimate(QUESTION, many).rented).toBeLessThan(estimate().rented);
});

it('estimates the reward of a rented node from the fees of its renters, and none without fees', () => {
  const rewards = { value_uusd_per_hour: 65_535_000, fee_return_ppm: 500_000, idle_rate_ppm: 0 };
  const policy = rewardPolicy({ rewards, no_collateral_ppm: 1_000_000 });
  const cycle = (fees: number) => [entryOf(2, { rented: true, paid_fees_uusd: fees })];
  const market = {
    ...marketOf(cycle(9_000_000)),
    before: { cycle: { number: 2, entries: cycle(5_000_000) }, lengthMs: 1_800_000 },
  };
  const rentedFor = (fee_uusd?: number) =>
    estimateRewards({ ...QUESTION, fee_uusd }, market, policy).rented * 65_535;
  expect([rentedFor(2_000_000), rentedFor(4_000_000), rentedFor()]).toEqual([1_000, 2_000, 0]);
});

it('applies the same idle cap as the weight computation', () => {
  const caps = [{ model: H100, min_gpus: 1, max_gpus: 8, cap_gpus: 1 }];
  const wanted = estimate(QUESTION, [entryOf(2, { gpu_model: RTX4090 })]);
  const policy = goldenPolicy({ idle_caps: caps });
  const diluted = estimate(QUESTION, [entryOf(2, { gpu_model: RTX4090 })], policy);
  expect(diluted.idle).toBeLessThan(wanted.idle);
  expect(diluted.rented).toBe(wanted.rented);
});

it.each([
  ['an unknown model', { ...QUESTION, gpu_model: 'Voodoo 2' }, ['unknown_model', 'price']],
  ['a price above the policy', { ...QUESTION, price_uusd: 8_000_001 }, ['price']],
])('names the obstacle for %s', (_, question, obstacles) => {
  expect(estimate(question)).toEqual({ rented: 0, idle: 0, obstacles });
});

it('treats every hotkey as registered without a metagraph, and only registered hotkeys with one', () => {
  const entries = [entryOf(2, { rented: true })];
  const market = marketOf(entries);
  const registered = estimateRewards(QUESTION, { ...market, neurons: null }, goldenPolicy());
  expect(registered).toEqual(estimateRewards(QUESTION, market, goldenPolicy()));
  const alone = { ...market, neurons: [{ uid: 0, hotkey: BURN }] };
  expect(estimateRewards(QUESTION, alone, goldenPolicy()).rented).toBeCloseTo(0.7, 4);
});

it('estimates from the last closed cycle and reloads when the next cycle is closed', async () => {
  const store = await createTestStore();
  const policy = goldenPolicy();
  const { estimate } = createRewardEstimates({
    store,
    policy,
    validator: BURN,
    embedded: false,
    metagraph: null,
  });
  const close = (number: number, entry: CycleEntry) =>
    insertCycle(store, { number, ended_ms: number }, [
      {
        cycle: number,
        executor_id: entry.executor_id,
        verdict: 'ok',
        length_ms: 60_000,
        failure_ppm: 0,
        entry_json: JSON.stringify(entry),
      },
    ]);
  const before = await estimate(QUESTION);
  expect(before.rented).toBeCloseTo(0.7, 4);
  await close(1, entryOf(2, { rented: true, gpu_count: 8 }));
  const after = await estimate(QUESTION);
  expect(after.rented).toBeLessThan(0.3);
  expect(await estimate({ ...QUESTION, price_uusd: 1 })).toEqual(after);
  expect((await estimate({ ...QUESTION, price_uusd: 99_000_000 })).obstacles).toEqual(['price']);
  await close(2, entryOf(2, { rented: true, gpu_count: 1 }));
  expect((await estimate(QUESTION)).rented).toBeGreaterThan(after.rented);
  await store.destroy();
});
