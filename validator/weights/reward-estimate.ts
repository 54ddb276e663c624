/** What the weights would give a node that is not there yet: the function of the weights, on the last cycle with it added. Pure. */
import {
  REWARD_ESTIMATE_PATH,
  RewardQuestion,
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

/** Neither is anybody's: no such key is registered, no such executor is stored. */
const NEWCOMER = hotkeyOf(new Uint8Array(32));
const NEWCOMER_ID = 'ffffffff-ffff-4fff-8fff-ffffffffffff';
const NEWCOMER_UID = 0;
const NO_EVIDENCE = '0'.repeat(64);

/** Who earns now. */
export type MarketState = {
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
  market: MarketState,
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
  market: MarketState,
  policy: WeightPolicy,
): string {
  const { gpu_model: model, gpu_count: count } = question;
  return [count, model, ...obstaclesOf(question, market, policy)].join(' ');
}

function obstaclesOf(
  question: RewardQuestion,
  { embedded }: MarketState,
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
  return total === 0 ? 0 : (weights[uids.indexOf(NEWCOMER_UID)] ?? 0) / total;
}

// MERGED validator/weights/reward-estimate.ts: Answers what a node would earn, from the last closed cycle of the ledger.
/** Answers that are kept until the next cycle. */
const MAX_KEPT = 5_000;

export type RewardEstimatesOptions = {
  store: EvidenceStore;
  policy: WeightPolicy;
  validator: Hotkey;
  /** Whether simulated GPUs score. */
  embedded: boolean;
  /** Null: nobody knows who is registered. */
  metagraph: Metagraph | null;
};

export type RewardEstimates = ReturnType<typeof createRewardEstimates>;

export function createRewardEstimates(options: RewardEstimatesOptions) {
  const { store, policy, validator, embedded, metagraph } = options;
  /** Of a large fleet a cycle is long: read and reckoned with once for all who ask, until the next one is closed. */
  let read: { number: number | null; market: Promise<MarketState> } | null = null;
  const kept = new Map<string, RewardShares>();

  async function marketAt(number: number | null): Promise<MarketState> {
    const cycle: Cycle | null = number === null ? null : ((await readCycle(store, number)) ?? null);
    const hotkeys = new Set(cycle?.entries.map(({ hotkey }) => hotkey));
    const neurons = metagraph === null ? null : (await metagraph.read([...hotkeys])).neurons;
    return { validator, embedded, neurons, cycle };
  }

  return {
    async estimate(question: RewardQuestion): Promise<RewardShares> {
      const number = (await lastCycle(store))?.number ?? null;
      if (read === null || read.number !== number) {
        const market = marketAt(number);
        kept.clear();
        read = { number, market };
        // What failed once is asked for again.
        market.catch(() => {
          read = null;
        });
      }
      const market = await read.market;
      const kind = `${number} ${kindOf(question, market, policy)}`;
      const known = kept.get(kind);
      if (known !== undefined) return known;
      const shares = estimateRewards(question, market, policy);
      if (kept.size < MAX_KEPT) kept.set(kind, shares);
      return shares;
    },
  };
}

// MERGED validator/weights/reward-estimate.ts: The gateway's route to the estimate of rewards: the central API shows it to providers.
export function registerRewardEstimateRoutes(server: HttpServer, estimates: RewardEstimates): void {
  server.get(
    REWARD_ESTIMATE_PATH,
    { schema: { querystring: RewardQuestion, response: { 200: RewardShares } } },
    (request) => estimates.estimate(request.query),
  );
}
