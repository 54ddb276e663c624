/** What the central API asks its validator's gateway about a node that is not there yet. */
import { z } from 'zod';

export const REWARD_ESTIMATE_PATH = '/v1/reward-estimate';

const MAX_GPUS = 64;
const MAX_PRICE_UUSD = 1_000_000_000_000;

/** Query of the gateway's route. */
export const RewardQuestion = z.object({
  /** Full name as drivers report it. */
  gpu_model: z.string().min(1).max(200),
  gpu_count: z.coerce.number().int().min(1).max(MAX_GPUS),
  /** Micro-USD per GPU and hour. */
  price_uusd: z.coerce.number().int().min(0).max(MAX_PRICE_UUSD),
});
export type RewardQuestion = z.output<typeof RewardQuestion>;

const Share = z.number().min(0).max(1);

/** Of everything that the validator's weights give away: by the same function that they are computed with. */
export const RewardShares = z.object({
  rented: Share,
  idle: Share,
  /** Why it earns nothing, in the words of the weights; empty when it does. */
  obstacles: z.array(z.string().max(64)).max(20),
});
export type RewardShares = z.output<typeof RewardShares>;
