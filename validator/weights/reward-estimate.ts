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
import { cyclesBefore, findCycle, lastCycle, readCycle } from './cycle.store.ts';
import type { Cycle, CycleEntry, Neuron } from './cycle-set.ts';
import type { Metagraph } from './metagraph.ts';
import { type Obstacle, scoresOf } from './points.ts';
import type { WeightPolicy } from './weight-policy.ts';

/** Placeholder key and id: no such key is registered, no such executor is stored. */
const CANDIDATE = hotkeyOf(new Uint8Array(32));
const CANDIDATE_ID = 'ffffffff-ffff-4fff-8fff-ffffffffffff';
/** Uid of the candidate; uid 0 belongs to the burn recipient. */
const CANDIDATE_UID = 1;
const NO_EVIDENCE = '0'.repeat(64);

export type MarketState = {
  validator: Hotkey;
  /** True if simulated GPUs earn points. */
  embedded: boolean;
  /** Registered neurons; null if unknown. Then every hotkey counts as registered. */
  neurons: readonly Neuron[] | null;
  /** The last cycle; null before the first. */
  cycle: Cycle | null;
  /** The cycle before it, and the time between the ends of both; null if there is none. */
  before: { cycle: Cycle; lengthMs: number } | null;
};

const HOUR_MS = 3_600_000;

/**
 * Returns the shares of all weight, rented and idle, for a node with full uptime and no failures, without collateral,
 * bonus or other nodes of its hotkey. While rented, its renters pay the stated fees. Pure.
 */
export function estimateRewards(
  question: RewardQuery,
  market: MarketState,
  policy: WeightPolicy,
): RewardShares {
  return {
    rented: shareOf(candidate(question, policy, true), question.fee_uusd ?? 0, market, policy),
    idle: shareOf(candidate(question, policy, false), 0, market, policy),
    obstacles: [...obstaclesOf(question, market, policy)],
  };
}

/** Cache key, equal for questions with the same answer: the price matters only through its fee and its obstacles. */
export function cacheKeyOf(
  question: RewardQuery,
  market: MarketState,
  policy: WeightPolicy,
): string {
  const { gpu_model: model, gpu_count: count, fee_uusd: fee = 0 } = question;
  return [count, model, fee, ...obstaclesOf(question, market, policy)].join(' ');
}

function obstaclesOf(
  question: RewardQuery,
  { embedded }: MarketState,
  policy: WeightPolicy,
): readonly Obstacle[] {
  const entries = [candidate(question, policy, false)];
  return scoresOf({ number: 0, entries }, policy, embedded)[0]?.obstacles ?? [];
}

function candidate(
  { gpu_model, gpu_count, price_uusd }: RewardQuery,
  policy: WeightPolicy,
  rented: boolean,
): CycleEntry {
  return {
    executor_id: CANDIDATE_ID,
    hotkey: CANDIDATE,
    evidence_id: NO_EVIDENCE,
    verdict: 'ok',
    simulated: false,
    gpu_model,
    gpu_count,
    price_uusd,
    rented,
    uptime_minutes: policy.uptime.full_minutes,
    runtime_proven: false,
    collateral: false,
    failure_ppm: 0,
    bandwidth_mbit: null,
  };
}

/** Share of the sum of all weights, 0 to 1, for a node whose renters pay `feeUusd` per hour. */
function shareOf(
  entry: CycleEntry,
  feeUusd: number,
  market: MarketState,
  policy: WeightPolicy,
): number {
  const { validator, embedded } = market;
  const others = market.cycle?.entries ?? [];
  const { cycle: former, lengthMs } = market.before ?? { cycle: null, lengthMs: HOUR_MS };
  const paid = Math.floor((feeUusd * lengthMs) / HOUR_MS);
  const neurons = neuronsWith(entry, market, policy);
  const window = { ends_ms: 0, length_ms: lengthMs };
  const cycles = [
    { number: 0, entries: [...(former?.entries ?? others), { ...entry, paid_fees_uusd: 0 }] },
    { number: 1, entries: [...others, { ...entry, paid_fees_uusd: paid }] },
  ];
  const set = { epoch: 0, validator, embedded, neurons, window, cycles };
  const result = computeWeights(set, policy);
  const { uids = [], weights = [] } = result ?? {};
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return total === 0 ? 0 : (weights[uids.indexOf(CANDIDATE_UID)] ?? 0) / total;
}

/** The burn recipient gets uid 0 and the candidate CANDIDATE_UID. */
function neuronsWith(
  { hotkey: own }: CycleEntry,
  market: MarketState,
  policy: WeightPolicy,
): Neuron[] {
  const others = market.cycle?.entries ?? [];
  const fixed = policy.burn_hotkey ?? market.neurons?.find(({ uid }) => uid === 0)?.hotkey;
  const present = (market.neurons ?? others).map(({ hotkey }) => hotkey);
  const hotkeys = [...new Set([fixed ?? market.validator, own, ...present])];
  return hotkeys.map((hotkey, uid) => ({ uid, hotkey }));
}

/** Maximum number of cached answers; the cache is cleared with the next cycle. */
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
    const before = number === null ? null : await cycleBefore(number);
    const hotkeys = new Set(cycle?.entries.map(({ hotkey }) => hotkey));
    const neurons = metagraph === null ? null : (await metagraph.read([...hotkeys])).neurons;
    return { validator, embedded, neurons, cycle, before };
  }

  async function cycleBefore(number: number): Promise<MarketState['before']> {
    const [former] = await cyclesBefore(store, number, 1);
    const last = await findCycle(store, number);
    const cycle = former === undefined ? undefined : await readCycle(store, former.number);
    if (former === undefined || last === undefined || cycle === undefined) return null;
    return { cycle, lengthMs: last.ended_ms - former.ended_ms };
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
