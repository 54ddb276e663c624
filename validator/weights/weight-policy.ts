/** The weight policy: a versioned file whose hash is stored with each epoch, so that anyone can recompute it. */
import { join } from 'node:path';
import { z } from 'zod';
import { migSlicesOf } from '#shared/api/gpu-type.ts';
import { ConfigError } from '#shared/runtime/config.ts';
import { canonicalJson } from '#shared/signing/canonical-json.ts';
import { Hotkey } from '#shared/signing/hotkey.ts';
import { sha256Hex } from '#shared/signing/signed-request.ts';
import { readPolicyFile } from '../checks/policy-file.ts';

/** Parts per million: a factor of 1. */
export const ONE_PPM = 1_000_000;
/**
 * Number of cycles without a measurement in which an executor keeps its points. In the next cycle its last value
 * counts; afterwards it has no points.
 */
export const CARRY_CYCLES = 3;
/** One million USD per hour: bounds products of factors to safe integers. */
const MAX_RATE_UUSD = 1_000_000_000_000;
const MAX_MODELS = 1_000;
const MAX_WINDOW_CYCLES = 1_000;
const MAX_POLICY_BYTES = 1_000_000;
/** Upper limit of the uptime window; stored cycles are retained longer (weights.ts). */
const MAX_UPTIME_MINUTES = 14 * 24 * 60;

const Ppm = z.int().min(0).max(ONE_PPM);
const Model = z.string().min(1).max(200);
const GpuCount = z.int().min(1).max(1_024);

const IdleCap = z.strictObject({
  /** Full GPU name; null for every model that has no separate entry. */
  model: Model.nullable(),
  min_gpus: GpuCount,
  max_gpus: GpuCount,
  /** Number of idle GPUs of the model, on hosts of this size, that earn full points. More GPUs share these points. */
  cap_gpus: z.int().min(0).max(1_000_000_000),
});

/** Converts weight to money, so that the pools depend on the fees that were paid and on the GPUs that were idle. */
const Rewards = z.strictObject({
  /** Upper limit of what all weight is worth, in micro-USD per hour. */
  value_uusd_per_hour: z.int().min(1).max(MAX_RATE_UUSD),
  /**
   * Part of a paid fee that the node earns if all factors are 1. With all bonuses it must be below 1, so that a
   * provider that rents its own node loses money.
   */
  fee_return_ppm: Ppm,
  /** Maximum part of its rate that an idle GPU earns. */
  idle_rate_ppm: Ppm,
});

type Bonuses = {
  runtime_bonus_ppm: number;
  linked_chat_bonus_ppm?: number | undefined;
  rewards?: z.output<typeof Rewards> | undefined;
};

/** Returns false if the largest reward for a fee is not below the fee. */
function returnsLessThanFees({
  rewards,
  runtime_bonus_ppm: runtime,
  linked_chat_bonus_ppm: chat = 0,
}: Bonuses): boolean {
  const factors = [rewards?.fee_return_ppm ?? 0, ONE_PPM + runtime, ONE_PPM + chat];
  return factors.reduce((before, factor) => before * BigInt(factor), 1n) < BigInt(ONE_PPM) ** 3n;
}

export const WeightPolicy = z
  .strictObject({
    version: z.int().min(1).max(1_000_000),
    netuid: z.int().min(0).max(65_535),
    /** Recipient of unearned shares; null for the hotkey with uid 0, which is the same for every validator. */
    burn_hotkey: Hotkey.nullable(),
    /** Largest parts of all weight that the pools get; `burn` is the part that is never earned. */
    pools_ppm: z.strictObject({ burn: Ppm, mining: Ppm, idle: Ppm }),
    /** Micro-USD per GPU and hour by full GPU name; other models earn nothing. */
    rates_uusd: z.record(Model, z.int().min(0).max(MAX_RATE_UUSD)),
    /** A node priced above this multiple of the rate earns nothing. */
    max_price_rate_ppm: z.int().min(0).max(1_000_000_000),
    /** The uptime factor rises from `floor_ppm` to 1,000,000 ppm within `full_minutes` of good verdicts. */
    uptime: z.strictObject({
      floor_ppm: Ppm,
      full_minutes: z.int().min(1).max(MAX_UPTIME_MINUTES),
    }),
    runtime_bonus_ppm: Ppm,
    no_collateral_ppm: Ppm,
    /** Bonus of a provider with a linked chat account; absent in policies of older versions. */
    linked_chat_bonus_ppm: Ppm.optional(),
    /** Size of the pools in money; absent in policies of older versions, whose pools were shared in full. */
    rewards: Rewards.optional(),
    /** The first matching entry applies; without a match there is no cap. */
    idle_caps: z.array(IdleCap).max(MAX_MODELS),
    /** Part of the failure average that remains after each verdict. */
    failure_keep_ppm: Ppm,
    /** Number of cycles in the mean. */
    window_cycles: z
      .int()
      .min(CARRY_CYCLES + 2)
      .max(MAX_WINDOW_CYCLES),
    min_bandwidth_mbit: z.int().min(0).max(1_000_000),
    banned_hotkeys: z.array(Hotkey).max(100_000),
    /** Decides whether the sum of all weights or the largest weight is 65,535. */
    conversion: z.enum(['sum65535', 'max65535']),
    /** Sets the weight of a hotkey with a live node but no points to 1. */
    live_floor: z.boolean(),
  })
  .refine(
    ({ pools_ppm: { burn, mining, idle } }) => burn + mining + idle === ONE_PPM,
    `The pools do not add up to ${ONE_PPM} ppm`,
  )
  .refine(returnsLessThanFees, {
    path: ['rewards', 'fee_return_ppm'],
    message: 'With all bonuses, a fee of 1 USD returns 1 USD or more: lower it or the bonuses',
  })
  .refine(
    ({ rates_uusd }) => Object.keys(rates_uusd).length <= MAX_MODELS,
    `There are more than ${MAX_MODELS} rates`,
  );
export type WeightPolicy = z.output<typeof WeightPolicy>;

export const DEFAULT_POLICY_FILE: string = join(import.meta.dirname, 'default-policy.json');

/** Fields that only stored policies of older versions may lack. */
const PolicyFile = WeightPolicy.refine(({ rewards }) => rewards !== undefined, {
  path: ['rewards'],
  message: 'Missing: copy it from the default policy',
}).refine(({ linked_chat_bonus_ppm: bonus }) => bonus !== undefined, {
  path: ['linked_chat_bonus_ppm'],
  message: 'Missing: copy it from the default policy',
});

const FILE = {
  what: 'weights',
  maxBytes: MAX_POLICY_BYTES,
  example: 'validator/weights/default-policy.json',
};

/** Throws ConfigError with the file and every wrong field. */
export function readWeightPolicy(path: string): WeightPolicy {
  return readPolicyFile(PolicyFile, path, FILE);
}

/** Reads a policy of this or an older version, for comparisons. Throws as `readWeightPolicy` does. */
export function readAnyWeightPolicy(path: string): WeightPolicy {
  return readPolicyFile(WeightPolicy, path, FILE);
}

/**
 * Throws ConfigError for a rate of a model that the check policy does not list, because verdicts state that such a
 * model earns nothing.
 */
export function requireListedModels(
  { rates_uusd: rates }: WeightPolicy,
  models: Readonly<Record<string, unknown>>,
): void {
  const unlisted = Object.keys(rates).filter((model) => models[model] === undefined);
  if (unlisted.length === 0) return;
  throw new ConfigError(
    `the weight policy has rates for models that \`models\` of the check policy does not list: ${unlisted.join(', ')}`,
  );
}

/** SHA-256 of the canonical JSON, hex. */
export function policyHashOf(policy: WeightPolicy): string {
  return sha256Hex(canonicalJson(policy));
}

/** Micro-USD per GPU and hour. A MIG device gets its part of the card's rate; an unknown model gets 0. */
export function rateOf({ rates_uusd: rates }: WeightPolicy, model: string): number {
  const own = rates[model];
  if (own !== undefined) return own;
  const part = migSlicesOf(model);
  if (part === null) return 0;
  return Math.floor(((rates[part.card] ?? 0) * part.slices) / part.of);
}

/** Cap that applies to a node; null if none applies. */
export function idleCapOf(policy: WeightPolicy, model: string, gpuCount: number): IdleCapMatch {
  const fits = policy.idle_caps
    .map((cap, line) => ({ ...cap, line }))
    .filter((cap) => cap.min_gpus <= gpuCount && gpuCount <= cap.max_gpus);
  return fits.find((cap) => cap.model === model) ?? fits.find((cap) => cap.model === null) ?? null;
}

/** An entry of `idle_caps` with its position. */
export type IdleCapMatch = (z.output<typeof IdleCap> & { line: number }) | null;
