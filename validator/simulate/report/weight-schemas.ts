/** The part of a report about weights: the policy, the weights of each host, and what all weight was worth. */
import { z } from 'zod';

const Count = z.int().min(0);
const Hours = z.number().min(0);
const Usd = z.number();
const Share = z.number();

/** Part of all weight that hosts got from a pool, before weights are rounded, and the number of hosts with points. */
const EarnedPool = z.strictObject({ share: Share, hosts: Count });

const EpochShares = z.strictObject({
  from_hours: Hours,
  /** Hours until the next epoch, or until the figures end. */
  hours: Hours,
  rented_pool: EarnedPool,
  idle_pool: EarnedPool,
});
export type EpochShares = z.output<typeof EpochShares>;

/** Worth of all weight, by `weights_worth_usd_per_hour` of the scenario. */
export const Emission = z.strictObject({
  /** Hours since the first epoch, and hours before it, in which no weights were set. */
  hours: Hours,
  hours_before: Hours,
  emitted_usd: Usd,
  /** Worth of the weight of all hosts. */
  rewards_usd: Usd,
  /** Worth of the weight that no host got. */
  burned_usd: Usd,
  /** Share of the newest weights that no host got. */
  newest_burned_share: Share,
  /** Oldest first. */
  epochs: z.array(EpochShares),
});
export type Emission = z.output<typeof Emission>;

/** Terms of the weight policy that decide how much of the weight is burned. */
export const PolicyTerms = z.strictObject({
  /** Name of the file without its ending. */
  name: z.string(),
  /** Parts of all weight: never earned, and the most that rented and idle hosts get. */
  burn_share: Share,
  rented_share: Share,
  idle_share: Share,
  /** Reward for a fee and for an idle GPU relative to its rate; null for a policy that shares the pools in full. */
  fee_return: Share.nullable(),
  idle_rate: Share.nullable(),
});
export type PolicyTerms = z.output<typeof PolicyTerms>;

export const WeighedHost = z.strictObject({
  gpu: z.string(),
  /** Strategy of the provider for its prices, by the names of the scenario. */
  strategy: z.string(),
  cheat: z.string().nullable(),
  /** Share of its time in which the host did what it offers; 0 for a cheat. */
  quality: Share,
  weight_share: Share,
  /** Share of the rates of all GPUs, which is the share of an average host. */
  value_share: Share,
  /** True if the provider rents the host itself whenever it is free. */
  rents_itself: z.boolean(),
  /** Income from all rentals of the host, own rentals included. */
  income_usd: Usd,
  /** Charges less refunds of the provider's rentals of this host. */
  own_rentals_usd: Usd,
  /** Worth of the host's weight since the first epoch, by `weights_worth_usd_per_hour` of the scenario. */
  reward_usd: Usd,
});
export type WeighedHost = z.output<typeof WeighedHost>;
