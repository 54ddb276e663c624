/** Compares the validator's weights with the reference model for random fleets and policies. */
import { expect, it } from 'vitest';
import { publicKeyOf } from '#shared/signing/hotkey.ts';
import { computeWeights } from '../../validator/weights/compute-weights.ts';
import type { CycleEntry, CycleSet } from '../../validator/weights/cycle-set.ts';
import type { WeightPolicy } from '../../validator/weights/weight-policy.ts';
import { selfRentals } from '../docs/self-rental.ts';
import { createSeededRandom } from '../fakes/seeded-random.ts';
import { entryOf, H100, hotkey, RTX4090, rewardPolicy, setOf } from '../fixtures/cycle-set.ts';
import { modelWeights } from './weight-model.ts';

const FLEETS = 1_000;
const random = createSeededRandom(20_261_127);
const either = () => random.int(2) === 0;
const oneOf = <T>(...values: [T, ...T[]]): T => values[random.int(values.length)] ?? values[0];
const HOTKEYS = Array.from({ length: 12 }, (_, at) => hotkey(40 + at));
const MODELS = [H100, RTX4090, 'NVIDIA Unheard', 'Tesla T4'] as const;

function randomPolicy(): WeightPolicy {
  const burn = random.int(400_000);
  const mining = random.int(600_001);
  const caps = [
    { model: H100, min_gpus: 1, max_gpus: 8, cap_gpus: random.int(20) },
    { model: null, min_gpus: 1, max_gpus: oneOf(3, 1_024), cap_gpus: random.int(30) },
  ];
  return rewardPolicy({
    pools_ppm: { burn, mining, idle: 1_000_000 - burn - mining },
    burn_hotkey: random.int(20) === 0 ? hotkey(99) : oneOf(null, null, HOTKEYS[0] ?? null),
    rates_uusd: { [H100]: 2_000_000, [RTX4090]: random.int(700_000), 'Tesla T4': 0 },
    uptime: { floor_ppm: random.int(1_000_001), full_minutes: 1 + random.int(9_000) },
    max_price_rate_ppm: oneOf(1_000_000, 4_000_001),
    linked_chat_bonus_ppm: random.int(300_000),
    rewards: {
      value_uusd_per_hour: 10 ** (3 + random.int(6)) + random.int(1_000),
      fee_return_ppm: random.int(600_000),
      idle_rate_ppm: random.int(1_000_001),
    },
    idle_caps: caps.slice(random.int(3)),
    window_cycles: 5 + random.int(4),
    banned_hotkeys: HOTKEYS.slice(11),
    conversion: oneOf('sum65535', 'sum65535', 'max65535'),
    live_floor: either(),
  });
}

function randomEntry(number: number, fees: Map<number, number>): CycleEntry {
  const rented = either();
  const paid = Math.max(0, (fees.get(number) ?? random.int(1e6)) + random.int(400_000) - 40_000);
  fees.set(number, paid);
  return entryOf(number, {
    hotkey: HOTKEYS[number % HOTKEYS.length] ?? hotkey(40),
    verdict: oneOf('ok', 'ok', 'ok', 'ok', 'failed', 'withheld'),
    simulated: random.int(20) === 0,
    gpu_model: oneOf(...MODELS, H100, RTX4090),
    gpu_count: random.int(9),
    rented,
    uptime_minutes: random.int(9_000),
    runtime_proven: either(),
    collateral: either(),
    failure_ppm: random.int(1_000_001),
    price_uusd: oneOf(null, 2_000_000, random.int(9_000_000)),
    bandwidth_mbit: oneOf(null, 50 + random.int(100), 1_000),
    ...(random.int(8) === 0 ? {} : { paid_fees_uusd: paid }),
    ...(random.int(8) === 0 ? {} : { chat_linked: either() }),
  });
}

function randomFleet(): CycleSet {
  const size = 1 + random.int(14);
  const fees = new Map<number, number>();
  const cycles = Array.from({ length: random.int(20) === 0 ? 0 : 2 + random.int(9) }, () =>
    Array.from({ length: size }, (_, at) => at + 1)
      .filter(() => random.int(4) > 0)
      .map((number) => randomEntry(number, fees)),
  );
  const set = setOf(cycles, { window: { ends_ms: 1, length_ms: random.int(9) * 1_200_000 } });
  // Some hotkeys are not registered.
  return { ...set, neurons: set.neurons.filter(({ uid }) => uid === 0 || random.int(8) > 0) };
}

it('makes renting from oneself lose money in a market of any size', () => {
  for (const { others, fee, rented, gainOfFullPools } of selfRentals()) {
    // Even for a node that would earn nothing while idle.
    expect({ others, isLoss: rented < fee }).toEqual({ others, isLoss: true });
    // If the pools were shared in full, the rental would gain money in a small market.
    if (others <= 100) expect(gainOfFullPools).toBeGreaterThan(0);
  }
});

it(`posts the weights of the reference model for ${FLEETS} random fleets`, () => {
  let different = 0;
  for (let fleet = 0; fleet < FLEETS; fleet += 1) {
    const [set, policy] = [randomFleet(), randomPolicy()];
    const result = computeWeights(set, policy);
    const rules = { ...policy, linked_chat_bonus_ppm: policy.linked_chat_bonus_ppm ?? 0 };
    if (policy.rewards === undefined) throw new Error('the policy has no rewards');
    const expected = modelWeights(set, { ...rules, rewards: policy.rewards }, (key) => {
      const bytes = publicKeyOf(key);
      if (bytes === null) throw new Error(`${key} is not a hotkey`);
      return bytes;
    });
    const posted =
      result === null
        ? null
        : new Map(result.uids.map((uid, at) => [uid, result.weights[at] ?? 0]));
    expect({ fleet, posted }).toEqual({
      fleet,
      posted: expected && new Map([...expected].sort(([a], [b]) => a - b)),
    });
    if ((posted?.size ?? 0) > 2) different += 1;
  }
  // Most fleets must earn something, or the comparison would prove little.
  expect(different).toBeGreaterThan(FLEETS / 2);
});
