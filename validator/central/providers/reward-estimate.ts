/** Estimates the income of a node: rental income from its price, and subnet rewards from the validator's weights. */
import type { RewardShares } from '#shared/api/central/validator-routes.ts';
import { microToUsd } from '#shared/api/money.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { netFee, providerShare } from '../money/ledger/shares.ts';
import type { Agents } from '../platform/ports.ts';
import type { MachineQuery, RewardEstimate } from './machine.schemas.ts';
import { nodePriceUusd, requireKnownType } from './node-price.ts';

/** Time for which shares are served from memory. Weights change in cycles of minutes. */
const CACHE_MS = 60_000;
const MAX_CACHED = 1_000;

export type RewardEstimatesDeps = {
  clock: Clock;
  agents: Pick<Agents, 'rewardShares'>;
  /**
   * Returns the fraction of the GPUs of this type that is rented now, 0 to 1. If the market has no such GPU, returns
   * the fraction of the whole market.
   */
  rentalRateOf(machine: string): Promise<number>;
};

export type RewardEstimates = ReturnType<typeof createRewardEstimates>;

export function createRewardEstimates({ clock, agents, rentalRateOf }: RewardEstimatesDeps) {
  const cached = new Map<string, { atMs: number; answer: Promise<RewardShares> }>();

  /**
   * Sends one query to the validator for concurrent callers. Failures are cached, too, because they cost the validator
   * as much as a success.
   */
  function sharesOf(gpuModel: string, gpuCount: number, priceUusd: number): Promise<RewardShares> {
    const key = `${gpuModel} ${gpuCount} ${priceUusd}`;
    const nowMs = clock.monotonicMs();
    const entry = cached.get(key);
    if (entry !== undefined && nowMs - entry.atMs < CACHE_MS) return entry.answer;
    const fee = netFee(priceUusd * gpuCount);
    const query = {
      gpu_model: gpuModel,
      gpu_count: gpuCount,
      price_uusd: priceUusd,
      fee_uusd: fee,
    };
    const answer = agents.rewardShares(query);
    cached.delete(key);
    cached.set(key, { atMs: nowMs, answer });
    const [oldest] = cached.keys();
    if (cached.size > MAX_CACHED && oldest !== undefined) cached.delete(oldest);
    return answer;
  }

  return {
    /** Throws 400 for an unknown type or a price outside its band, and 502 if the validator does not respond. */
    async estimate(query: MachineQuery): Promise<RewardEstimate> {
      const entry = requireKnownType(query.gpu_type);
      const priceUusd = nodePriceUusd(entry, query.gpu_price ?? null);
      const { gpu_count: count } = query;
      const shares = await sharesOf(entry.name, count, priceUusd);
      const utilization = await rentalRateOf(entry.name);
      const incomeUusd = priceUusd * count;
      return {
        rewards_on_subnet: shares.rented * utilization + shares.idle * (1 - utilization),
        rewards_while_rented: shares.rented,
        rewards_while_idle: shares.idle,
        reward_obstacles: shares.obstacles,
        rental_income_per_hour: microToUsd(incomeUusd),
        platform_fee_per_hour: microToUsd(incomeUusd - providerShare(incomeUusd)),
        expected_utilization: utilization,
        gpu_type: entry.name,
        gpu_count: count,
        gpu_price: microToUsd(priceUusd),
      };
    },
  };
}
