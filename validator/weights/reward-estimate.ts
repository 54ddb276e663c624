/** Estimates the rewards of a node that does not exist yet: computes weights for the last cycle with the node added. */
import {
  REWARD_ESTIMATE_PATH,
  RewardQuery,
  RewardShares,
} from '#shared/api/central/validator-routes.ts';
import type { HttpServer } from '#shared/http/server.ts';
import { type Hotkey, hotkeyOf } from '#shared/signing/hotkey.ts';
import type { EvidenceStore } from '../store/tables.ts';
import { computeWeights } from './compute-weights.ts';
import { lastCycle, readCycle } from './cycle.store.ts';
import type { Cycle, CycleEntry, Neuron } from './cycle-set.ts';
import type { Metagraph } from './metagraph.ts';
import { type Obstacle, scoresOf } from './points.ts';
import type { WeightPolicy } from './weight-policy.ts';

/** Placeholder key and id: no such key is registered, no such executor is stored. */
const CANDIDATE = hotkeyOf(new Uint8Array(32));
const CANDIDATE_ID = 'ffffffff-ffff-4fff-8fff-ffffffffffff';
const CANDIDATE_UID = 0;
const NO_EVIDENCE = '0'.repeat(64);

export type MarketState = {
  validator: Hotkey;
  /** True if simulated GPUs earn points. */
  embedded: boolean;
  /** Registered neurons; null if unknown. Then every hotkey counts as registered. */
  neurons: readonly Neuron[] | null;
  /** The last cycle; null before the first. */
  cycle: Cycle | null;
};

/**
 * Returns the shares of all weight, rented and idle, for a node with full uptime and no failures, without collateral or
 * runtime bonus, whose hotkey has no other node. Pure.
 */
export function estimateRewards(
  question: RewardQuery,
  market: MarketState,
  policy: WeightPolicy,
): RewardShares {
  return {
    rented: shareOf(candidate(question, policy, true), market, policy),
    idle: shareOf(candidate(question, policy, false), market, policy),
    obstacles: [...obstaclesOf(question, market, policy)],
  };
}

/** Cache key, equal for questions with the same answer: the price matters only through the obstacles that it causes. */
export function cacheKeyOf(
  question: RewardQuery,
  market: MarketState,
  policy: WeightPolicy,
): string {
  const { gpu_model: model, gpu_count: count } = question;
  return [count, model, ...obstaclesOf(question, market, policy)].join(' ');
}

function obstaclesOf(
  question: RewardQuery,
  { embedded }: MarketState,
  policy: WeightPolicy,
): readonly Obstacle[] {
  const entries = [candidate(question, policy, false)];
  return scoresOf({ number: 0, entries }, policy, embedded)[0]?.obstacles ?? [];
}

function candidate(question: RewardQuery, policy: WeightPolicy, rented: boolean): CycleEntry {
  return {
    executor_id: CANDIDATE_ID,
    hotkey: CANDIDATE,
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

/** Share of the sum of all weights, 0 to 1. */
function shareOf(entry: CycleEntry, market: MarketState, policy: WeightPolicy): number {
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
  return total === 0 ? 0 : (weights[uids.indexOf(CANDIDATE_UID)] ?? 0) / total;
}

/** Cached answers; the cache is cleared with the next cycle. */
const MAX_CACHED = 5_000;

export type RewardEstimatesOptions = {
  store: EvidenceStore;
  policy: WeightPolicy;
  validator: Hotkey;
  /** True if simulated GPUs earn points. */
  embedded: boolean;
  /** Null if registrations are unknown. */
  metagraph: Metagraph | null;
};

export type RewardEstimates = ReturnType<typeof createRewardEstimates>;

export function createRewardEstimates(options: RewardEstimatesOptions) {
  const { store, policy, validator, embedded, metagraph } = options;
  /** Market of the last cycle, loaded once per cycle and shared by all callers. */
  let loaded: { number: number | null; market: Promise<MarketState> } | null = null;
  const cache = new Map<string, RewardShares>();

  async function marketAt(number: number | null): Promise<MarketState> {
    const cycle: Cycle | null = number === null ? null : ((await readCycle(store, number)) ?? null);
    const hotkeys = new Set(cycle?.entries.map(({ hotkey }) => hotkey));
    const neurons = metagraph === null ? null : (await metagraph.read([...hotkeys])).neurons;
    return { validator, embedded, neurons, cycle };
  }

  return {
    async estimate(question: RewardQuery): Promise<RewardShares> {
      const number = (await lastCycle(store))?.number ?? null;
      if (loaded === null || loaded.number !== number) {
        const market = marketAt(number);
        cache.clear();
        loaded = { number, market };
        // A failed load is tried again by the next call.
        market.catch(() => {
          loaded = null;
        });
      }
      const market = await loaded.market;
      const kind = `${number} ${cacheKeyOf(question, market, policy)}`;
      const known = cache.get(kind);
      if (known !== undefined) return known;
      const shares = estimateRewards(question, market, policy);
      if (cache.size < MAX_CACHED) cache.set(kind, shares);
      return shares;
    },
  };
}

/** Gateway route from which the central API reads the estimates that it shows to providers. */
export function registerRewardEstimateRoutes(server: HttpServer, estimates: RewardEstimates): void {
  server.get(
    REWARD_ESTIMATE_PATH,
    { schema: { querystring: RewardQuery, response: { 200: RewardShares } } },
    (request) => estimates.estimate(request.query),
  );
}
