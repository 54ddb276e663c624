import { describe, expect, it } from 'vitest';
import { canonicalJson } from '#shared/signing/canonical-json.ts';
import { sha256Hex } from '#shared/signing/signed-request.ts';
import { createSeededRandom } from '../../test/fakes/seeded-random.ts';
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
import type { CycleEntry, CycleSet } from './cycle-set.ts';
import { scoresOf } from './points.ts';
import { MAX_WEIGHT } from './u16.ts';
import type { WeightPolicy } from './weight-policy.ts';

const A = hotkey(10);
const B = hotkey(11);
const C = hotkey(12);
const GOLDEN: CycleEntry[] = [
  entryOf(1, { hotkey: A, gpu_count: 8, rented: true, runtime_proven: true }),
  entryOf(2, { hotkey: B, gpu_model: RTX4090, rented: true, uptime_minutes: 3_600 }),
  entryOf(3, { hotkey: C, gpu_count: 2, collateral: false }),
  entryOf(4, { hotkey: B, gpu_model: RTX4090 }),
];

function computed(input: CycleSet, policy = goldenPolicy()) {
  const result = computeWeights(input, policy);
  if (result === null) throw new Error('the burn recipient is not registered');
  return result;
}

/** Weight by hotkey; 0 if no weight is posted. */
function weightsOf(input: CycleSet, policy: WeightPolicy = goldenPolicy()) {
  const { uids, weights } = computed(input, policy);
  const uidOf = new Map(input.neurons.map((neuron) => [neuron.hotkey, neuron.uid]));
  return (key: string) => {
    const uid = [...uidOf].find(([known]) => known === key)?.[1] ?? -1;
    return weights[uids.indexOf(uid)] ?? 0;
  };
}

const sum = (weights: readonly number[]) => weights.reduce((total, weight) => total + weight, 0);
const points = (entries: CycleEntry[], policy = goldenPolicy()) =>
  scoresOf({ number: 1, entries }, policy, false).map((score) => Number(score.points));

it('hashes the input incrementally to the same value as the whole text', () => {
  for (const cycles of [[], [[]], [GOLDEN], [GOLDEN.slice(0, 2), [], GOLDEN]]) {
    const set = setOf(cycles);
    expect(computed(set).inputHash).toBe(sha256Hex(canonicalJson(set)));
  }
});

it('uses only the newest cycles of the window', () => {
  const failed = GOLDEN.map((entry) => ({ ...entry, verdict: 'failed' as const }));
  const policy = goldenPolicy({ window_cycles: 2 });
  const weights = (cycles: CycleEntry[][]) => computed(setOf(cycles), policy).weights;
  expect(weights([failed, GOLDEN, GOLDEN])).toEqual(weights([GOLDEN, GOLDEN]));
  expect(weights([failed, GOLDEN])).not.toEqual(weights([failed, failed]));
});

describe('the golden vector', () => {
  it('gives the expected points and weights', () => {
    expect(points(GOLDEN)).toEqual([19_200_000, 183_750, 2_000_000, 350_000]);
    const { uids, weights } = computed(setOf([GOLDEN]));
    expect({ uids, weights }).toEqual({
      uids: [0, 1, 2, 3],
      weights: [6_553, 45_440, 2_387, 11_155],
    });
  });

  it('gives the same hashes in every version', () => {
    const { inputHash, policyHash, resultHash } = computed(setOf([GOLDEN]));
    expect([inputHash, policyHash, resultHash].map((hash) => hash.slice(0, 16))).toEqual([
      '796001e0a12238be',
      '06a2361174907e7f',
      '656bfe88690f566a',
    ]);
  });

  it('names the evidence document for every factor', () => {
    const { explain } = computed(setOf([GOLDEN]));
    expect(explain).toHaveLength(4 * 8);
    expect(explain).toContainEqual({
      executor: GOLDEN[1]?.executor_id,
      factor: 'uptime',
      valuePpm: 525_000,
      evidenceId: GOLDEN[1]?.evidence_id,
    });
  });

  it('gives the largest share 65,535 with the conversion max65535', () => {
    const weights = weightsOf(setOf([GOLDEN]), goldenPolicy({ conversion: 'max65535' }));
    expect(weights(A)).toBe(MAX_WEIGHT);
    expect(weights(BURN)).toBe(Math.floor((6_553.5 / 45_439.66) * MAX_WEIGHT));
  });
});

describe('obstacles', () => {
  it.each<[string, Partial<CycleEntry>, string]>([
    ['that failed', { verdict: 'failed' }, 'failed'],
    ['whose GPUs are simulated', { simulated: true }, 'simulated'],
    ['of a model without a rate', { gpu_model: 'NVIDIA Unheard' }, 'unknown_model'],
    ['with a price above the policy', { price_uusd: 8_000_001 }, 'price'],
    ['with a slow network connection', { bandwidth_mbit: 99 }, 'bandwidth'],
  ])('an executor %s earns nothing', (_, change, obstacle) => {
    const [score] = scoresOf({ number: 1, entries: [entryOf(1, change)] }, goldenPolicy(), false);
    expect(score).toMatchObject({ points: 0n, obstacles: [obstacle] });
  });

  it('a banned hotkey earns nothing, and an executor exactly at the limits earns', () => {
    const policy = goldenPolicy({ banned_hotkeys: [A] });
    expect(points([entryOf(1, { hotkey: A }), entryOf(2)], policy)).toEqual([0, 2_000_000]);
    expect(points([entryOf(1, { price_uusd: 8_000_000, bandwidth_mbit: 100 })])).toEqual([
      2_000_000,
    ]);
  });

  it('simulated GPUs earn nothing, except in a local marketplace', () => {
    const cycles = [[entryOf(1, { hotkey: A, simulated: true })]];
    expect(weightsOf(setOf(cycles))(A)).toBe(0);
    expect(weightsOf(setOf(cycles, { embedded: true }))(A)).toBeGreaterThan(0);
  });
});

it('rates a MIG device by its part of the card', () => {
  expect(points([entryOf(1, { gpu_model: `${H100} MIG 3g.40gb`, gpu_count: 2 })])).toEqual([
    2 * Math.floor((2_000_000 * 3) / 7),
  ]);
});

describe('idle GPUs beyond the cap', () => {
  const cap = { model: null, min_gpus: 1, max_gpus: 2, cap_gpus: 2 };
  const policy = goldenPolicy({ idle_caps: [cap] });

  it('share the capped points per model and host size; rented GPUs are not capped', () => {
    const entries = [
      entryOf(1),
      entryOf(2),
      entryOf(3, { gpu_count: 2 }),
      entryOf(4, { gpu_count: 3 }),
      entryOf(5, { gpu_model: RTX4090 }),
      entryOf(6, { rented: true }),
    ];
    expect(points(entries, policy)).toEqual([
      1_000_000, 1_000_000, 2_000_000, 6_000_000, 350_000, 2_000_000,
    ]);
  });

  it('earn the same on divided hosts as on whole hosts', () => {
    const whole = points([entryOf(1, { gpu_count: 2 }), entryOf(2, { gpu_count: 2 })], policy);
    const divided = points([entryOf(1), entryOf(2), entryOf(3, { gpu_count: 2 })], policy);
    expect(sum(divided)).toBe(sum(whole));
  });

  it('count towards the cap while their verdict is withheld, but not after a failed verdict', () => {
    const others = (verdict: CycleEntry['verdict']) =>
      points([entryOf(1, { gpu_count: 2 }), entryOf(2, { gpu_count: 2, verdict })], policy)[0];
    expect([others('ok'), others('withheld'), others('failed')]).toEqual([2e6, 2e6, 4e6]);
  });
});

describe('the window', () => {
  const ok = entryOf(1, { hotkey: A });
  const failed = entryOf(1, { hotkey: A, verdict: 'failed' });
  const withheld = entryOf(1, { hotkey: A, verdict: 'withheld' });
  const steady = entryOf(2, { hotkey: B });
  const of = (...own: CycleEntry[]) => weightsOf(setOf(own.map((entry) => [entry, steady])));

  it('averages the cycles in which an executor was measured', () => {
    const half = of(ok, failed);
    expect(half(A) * 2).toBeCloseTo(half(B), -1);
    expect(of(ok, ok)(A)).toBe(of(ok)(A));
  });

  it('ignores withheld cycles', () => {
    for (const cycles of [
      [ok, failed, withheld],
      [withheld, ok, withheld, failed],
    ]) {
      expect(of(...cycles)(A)).toBe(of(ok, failed)(A));
    }
    const none = [withheld, { ...steady, verdict: 'withheld' as const }];
    const plain = weightsOf(
      setOf([
        [ok, steady],
        [failed, steady],
      ]),
    );
    const gaps = weightsOf(setOf([[ok, steady], none, [failed, steady], none]));
    expect([gaps(A), gaps(B), gaps(BURN)]).toEqual([plain(A), plain(B), plain(BURN)]);
  });

  it('keeps the last value of an unmeasured executor for one cycle, then drops it', () => {
    const dark = (cycles: number) => of(ok, failed, ok, ...Array(cycles).fill(withheld));
    expect(dark(3)(A)).toBe(of(ok, failed, ok)(A));
    expect(dark(4)(A)).toBe(of(ok)(A));
    expect(dark(5)(A)).toBe(0);
  });

  it('ignores older cycles', () => {
    const policy = goldenPolicy({ window_cycles: 5 });
    const cycles = [failed, ok, ok, ok, ok, ok].map((entry) => [entry, steady]);
    const weights = weightsOf(setOf(cycles), policy);
    expect(weights(A)).toBe(of(ok)(A));
  });

  it('assigns rented and idle cycles to their pools', () => {
    const rented = entryOf(1, { hotkey: A, rented: true });
    const mixed = of(rented, ok);
    // The whole mining pool and a third of the idle pool.
    expect(mixed(A)).toBe(Math.round((0.7 + 0.2 / 3) * MAX_WEIGHT));
  });
});

describe('fees', () => {
  const HOUR_MS = 3_600_000;
  const window = { ends_ms: 0, length_ms: 2 * HOUR_MS };
  const paying =
    (...totals: number[]) =>
    (change: Partial<CycleEntry>) =>
      totals.map((paid_fees_uusd) => entryOf(1, { hotkey: A, paid_fees_uusd, ...change }));
  /** Weight of an executor with these entries; all weight is worth 65.535 USD per hour. */
  function weightOf(entries: readonly CycleEntry[], change: Partial<WeightPolicy> = {}): number {
    const rewards = {
      value_uusd_per_hour: 65_535_000,
      fee_return_ppm: 500_000,
      idle_rate_ppm: 0,
    };
    const cycles = entries.map((entry) => [entry]);
    return weightsOf(setOf(cycles, { window }), rewardPolicy({ rewards, ...change }))(A);
  }
  const rented = { rented: true };

  it('return a part of what was paid between the first and the last cycle of the window', () => {
    // 4 USD in 2 hours, of which half returns: 1 USD per hour, which is 1,000 of 65,535.
    expect(weightOf(paying(7_000_000, 9_000_000, 11_000_000)(rented))).toBe(1_000);
    expect(weightOf(paying(7_000_000)(rented))).toBe(0);
    expect(weightOf(paying(7_000_000, 7_000_000)(rented))).toBe(0);
  });

  it('count once, even if a refund lowers the total in between', () => {
    expect(weightOf(paying(0, 4_000_000, 1_000_000, 4_000_000)(rented))).toBe(1_000);
    expect(weightOf(paying(0, 4_000_000, 1_000_000, 8_000_000)(rented))).toBe(2_000);
  });

  it('count for a node that is idle when it is checked, but not after a failed check', () => {
    expect(weightOf(paying(0, 4_000_000)({}))).toBe(1_000);
    expect(weightOf(paying(0, 4_000_000)({ verdict: 'failed' }))).toBe(0);
    expect(weightOf([entryOf(1, { hotkey: A, ...rented }), entryOf(1, { hotkey: A })])).toBe(0);
  });

  it('return at most the part of the pool, and more to a provider with a linked chat account', () => {
    expect(Math.abs(weightOf(paying(0, 4_000_000_000)(rented)) - 0.7 * MAX_WEIGHT)).toBeLessThan(1);
    expect(weightOf(paying(0, 4_000_000)({ ...rented, chat_linked: true }))).toBe(1_100);
    const none = { linked_chat_bonus_ppm: 0 };
    expect(weightOf(paying(0, 4_000_000)({ ...rented, chat_linked: true }), none)).toBe(1_000);
  });
});

it('burns to the hotkey with uid 0, or to the validator in epochs of older versions', () => {
  const neurons = [A, BURN].map((key, uid) => ({ uid, hotkey: key }));
  const window = { ends_ms: 0, length_ms: 0 };
  const burnt = (change: Partial<CycleSet>) => computed(setOf([], { neurons, ...change })).uids;
  expect([burnt({ window }), burnt({})]).toEqual([[0], [1]]);
});

describe('the burn recipient', () => {
  it('gets unearned shares, and all weight in an empty market', () => {
    expect(computed(setOf([]))).toMatchObject({ uids: [0], weights: [MAX_WEIGHT] });
    const idle = weightsOf(setOf([[entryOf(2)]]));
    expect(idle(BURN)).toBe(Math.round(0.8 * MAX_WEIGHT));
  });

  it('must be registered, or no weights are computed', () => {
    const set = setOf([GOLDEN], { neurons: [{ uid: 0, hotkey: A }] });
    expect(computeWeights(set, goldenPolicy())).toBeNull();
    const policy = goldenPolicy({ burn_hotkey: hotkey(99) });
    expect(computeWeights(setOf([GOLDEN]), policy)).toBeNull();
  });
});

describe('the floor', () => {
  const rich = entryOf(1, { hotkey: A, gpu_count: 1_000 });
  const poor = entryOf(2, { hotkey: B, gpu_model: 'poor' });
  const rates = { [H100]: 1_000_000_000, poor: 1 };

  it('gives 1 to the smallest share, taken from the largest weight', () => {
    const { uids, weights } = computed(setOf([[rich, poor]]), goldenPolicy({ rates_uusd: rates }));
    expect([uids, weights]).toEqual([
      [0, 1, 2],
      [52_427, 13_107, 1],
    ]);
  });

  it('gives 1 to live hotkeys without points if the policy says so', () => {
    const worthless = entryOf(3, { hotkey: C, gpu_model: 'NVIDIA Unheard' });
    const failed = entryOf(4, { hotkey: hotkey(13), verdict: 'failed' });
    const set = setOf([[rich, worthless, failed]]);
    expect(weightsOf(set)(C)).toBe(0);
    const weights = weightsOf(set, goldenPolicy({ live_floor: true }));
    expect([weights(C), weights(hotkey(13))]).toEqual([1, 0]);
  });
});

it('gives no weight to unregistered hotkeys, and shares their part among the others', () => {
  const entries = [entryOf(1, { hotkey: A }), entryOf(2, { hotkey: B })];
  const neurons = [BURN, A].map((key, uid) => ({ uid, hotkey: key }));
  const { uids, weights } = computed(setOf([entries], { neurons }));
  expect([uids, weights]).toEqual([
    [0, 1],
    [52_428, 13_107],
  ]);
});

describe('for random markets', () => {
  const random = createSeededRandom(81);
  const policy = goldenPolicy({
    idle_caps: [{ model: null, min_gpus: 1, max_gpus: 8, cap_gpus: 6 }],
  });

  function randomEntry(number: number): CycleEntry {
    return entryOf(number, {
      hotkey: hotkey(20 + (number % 6)),
      verdict: (['ok', 'ok', 'ok', 'failed', 'withheld'] as const)[random.int(5)] ?? 'ok',
      gpu_model: random.int(2) === 0 ? H100 : RTX4090,
      gpu_count: 1 + random.int(8),
      rented: random.int(2) === 0,
      uptime_minutes: random.int(9_000),
      runtime_proven: random.int(2) === 0,
      collateral: random.int(2) === 0,
      failure_ppm: random.int(500_000),
    });
  }
  const market = () =>
    setOf(
      Array.from({ length: 1 + random.int(6) }, () =>
        Array.from({ length: 1 + random.int(12) }, (_, index) => randomEntry(index + 1)),
      ),
    );
  const markets = Array.from({ length: 60 }, market);
  const shuffled = <T>(list: readonly T[]): T[] =>
    list
      .map((value) => ({ value, at: random.int(1_000_000) }))
      .sort((a, b) => a.at - b.at)
      .map(({ value }) => value);
  /** Changes one executor in every cycle. */
  const changed = (set: CycleSet, id: string, change: (entry: CycleEntry) => CycleEntry) => ({
    ...set,
    cycles: set.cycles.map(({ number, entries }) => ({
      number,
      entries: entries.map((entry) => (entry.executor_id === id ? change(entry) : entry)),
    })),
  });

  it('the sum is 65,535 and no weight is zero', () => {
    for (const set of markets) {
      const { weights } = computed(set, policy);
      expect([sum(weights), Math.min(...weights) > 0]).toEqual([MAX_WEIGHT, true]);
    }
  });

  it('the order of executors and neurons does not matter, even for the hashes', () => {
    for (const set of markets) {
      const cycles = set.cycles.map(({ number, entries }) => ({
        number,
        entries: shuffled(entries),
      }));
      const other = { ...set, neurons: shuffled(set.neurons), cycles };
      expect(computed(other, policy)).toEqual(computed(set, policy));
    }
  });

  it.each<[string, (entry: CycleEntry) => CycleEntry]>([
    ['more GPUs', (entry) => ({ ...entry, gpu_count: entry.gpu_count + (entry.rented ? 1 : 0) })],
    ['more uptime', (entry) => ({ ...entry, uptime_minutes: entry.uptime_minutes + 500 })],
    ['fewer failures', (entry) => ({ ...entry, failure_ppm: Math.floor(entry.failure_ppm / 2) })],
  ])('%s never lower the weight', (_, change) => {
    for (const set of markets) {
      const own = {
        ...entryOf(99, { hotkey: hotkey(60) }),
        ...randomEntry(99),
        hotkey: hotkey(60),
      };
      const cycles = set.cycles.map(({ number, entries }) => ({
        number,
        entries: [...entries, own],
      }));
      const keys = [...set.neurons, { uid: 500, hotkey: hotkey(60) }];
      const before = { ...set, cycles, neurons: keys };
      const after = changed(before, own.executor_id, change);
      const [less, more] = [weightsOf(before, policy), weightsOf(after, policy)];
      expect(more(hotkey(60))).toBeGreaterThanOrEqual(less(hotkey(60)));
    }
  });

  it('dividing executors among two hotkeys changes their weight by rounding only', () => {
    for (const set of markets) {
      const one = hotkey(20);
      const two = hotkey(61);
      const neurons = [...set.neurons, { uid: 501, hotkey: two }];
      const divided = {
        ...set,
        neurons,
        cycles: set.cycles.map(({ number, entries }) => ({
          number,
          entries: entries.map((entry) =>
            entry.hotkey === one && Number(entry.executor_id.at(-1)) % 2 === 0
              ? { ...entry, hotkey: two }
              : entry,
          ),
        })),
      };
      const whole = weightsOf(set, policy)(one);
      const parts = weightsOf(divided, policy);
      expect(parts(one) + parts(two)).toBeLessThanOrEqual(whole + 2);
    }
  });
});
