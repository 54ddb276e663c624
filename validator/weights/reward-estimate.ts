/** What the weights would give a node that is not there yet: the function of the weights, on the last cycle with it added. Pure. */
import type { RewardQuestion, RewardShares } from '#shared/api/central/validator-routes.ts';
import { type Hotkey, hotkeyOf } from '#shared/signing/hotkey.ts';
import { computeWeights } from './compute-weights.ts';
import type { Cycle, CycleEntry, Neuron } from './cycle-set.ts';
import { type Obstacle, scoresOf } from './points.ts';
import type { WeightPolicy } from './weight-policy.ts';

/** Neither is anybody's: no such key is registered, no such executor is stored. */
const NEWCOMER = hotkeyOf(new Uint8Array(32));
const NEWCOMER_ID = 'ffffffff-ffff-4fff-8fff-ffffffffffff';
const NEWCOMER_UID = 0;
const NO_EVIDENCE = '0'.repeat(64);

/** Who earns now. */
export type PresentMarket = {
  validator: Hotkey;
  /** Whether simulated GPUs score. */
  embedded: boolean;
  /** Those that are registered; null where nobody knows, and everybody counts as such. */
  neurons: readonly Neuron[] | null;
  /** The last one; null before the first. */
  cycle: Cycle | null;
};

/**
 * Of a node with full uptime and no failures, without deposit and without the bonus of its runtime, whose hotkey has
 * no other; in a cycle where it is rented whole, and in one where it idles.
 */
export function estimateRewards(
  question: RewardQuestion,
  market: PresentMarket,
  policy: WeightPolicy,
): RewardShares {
  return {
    rented: shareOf(newcomer(question, policy, true), market, policy),
    idle: shareOf(newcomer(question, policy, false), market, policy),
    obstacles: [...obstaclesOf(question, market, policy)],
  };
}

/** Questions with one answer: a price makes no difference but for what it stands in the way of. */
export function kindOf(
  question: RewardQuestion,
  market: PresentMarket,
  policy: WeightPolicy,
): string {
  const { gpu_model: model, gpu_count: count } = question;
  return [count, model, ...obstaclesOf(question, market, policy)].join(' ');
}

function obstaclesOf(
  question: RewardQuestion,
  { embedded }: PresentMarket,
  policy: WeightPolicy,
): readonly Obstacle[] {
  const entries = [newcomer(question, policy, false)];
  return scoresOf({ number: 0, entries }, policy, embedded)[0]?.obstacles ?? [];
}

function newcomer(question: RewardQuestion, policy: WeightPolicy, rented: boolean): CycleEntry {
  return {
    executor_id: NEWCOMER_ID,
    hotkey: NEWCOMER,
    evidence_id: NO_EVIDENCE,
    verdict: 'ok',
    simulated: false,
    ...question,
    rented,
    uptime_minutes: policy.uptime.full_minutes,
    runtime_proven: false,
    collateral: false,
    failure_ppm: 0,
    bandwidth_mbit: null,
  };
}

/** Of the sum of all weights, 0 to 1. */
function shareOf(entry: CycleEntry, market: PresentMarket, policy: WeightPolicy): number {
  const { validator, embedded, cycle } = market;
  const entries = [...(cycle?.entries ?? []), entry];
  const burn = policy.burn_hotkey ?? validator;
  const present = (market.neurons ?? entries).map(({ hotkey }) => hotkey);
  const hotkeys = [...new Set([entry.hotkey, burn, ...present])];
  const neurons = hotkeys.map((hotkey, uid) => ({ uid, hotkey }));
  const cycles = [{ number: cycle?.number ?? 0, entries }];
  const result = computeWeights({ epoch: 0, validator, embedded, neurons, cycles }, policy);
  const { uids = [], weights = [] } = result ?? {};
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return total === 0 ? 0 : (weights[uids.indexOf(NEWCOMER_UID)] ?? 0) / total;
}
