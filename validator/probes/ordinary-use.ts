/** Distributions of ordinary rentals, from recorded use of the product; README.md in this folder has their derivation. */
import { z } from 'zod';
import type { Random } from '#shared/runtime/random.ts';
import recorded from './ordinary-use.json' with { type: 'json' };

/** Frequencies by value. */
const Weights = z.record(z.string(), z.int().min(0));
export type Weights = z.output<typeof Weights>;
/** Least and most milliseconds. */
const Span = z.tuple([z.int().min(0), z.int().min(1)]);

const OrdinaryUse = z.strictObject({
  pod_names: z.strictObject({ words: Weights, forms: Weights }),
  ssh_keys: z.strictObject({
    types: Weights,
    rsa_bits: Weights,
    users: Weights,
    hosts: Weights,
    comments: Weights,
  }),
  /** Frequencies by place in the list of public templates; later places have that of the last. */
  templates_by_rank: z.array(z.int().min(0)).min(1),
  gpu_counts: Weights,
  port_counts: Weights,
  termination_hours: Weights,
  max_spend_usd: Weights,
  idle_minutes: Weights,
  notebook: Weights,
  ends: Weights,
  log_reads: Weights,
  metric_reads: Weights,
  poll_ms: Span,
  login_after_ms: Span,
  between_measurements_ms: Span,
  linger_ms: Span,
});
export type OrdinaryUse = z.output<typeof OrdinaryUse>;

export const ORDINARY_USE: OrdinaryUse = OrdinaryUse.parse(recorded);

/** Draws a value by its frequency. */
export function drawn(random: Random, weights: Weights): string {
  const entries = Object.entries(weights);
  let rest = random.int(entries.reduce((sum, [, weight]) => sum + weight, 0));
  for (const [value, weight] of entries) {
    if (rest < weight) return value;
    rest -= weight;
  }
  throw new Error('no value has a frequency');
}

const STEPS = 1_000_000;

/** Draws a duration whose logarithm is uniform: short waits are frequent, long ones occur. */
export function drawnMs(random: Random, [least, most]: readonly [number, number]): number {
  const low = Math.log(least + 1);
  return Math.round(Math.exp(low + ((Math.log(most + 1) - low) * random.int(STEPS)) / STEPS) - 1);
}

export const oneOf = <T>(random: Random, values: readonly [T, ...T[]]): T =>
  values[random.int(values.length)] ?? values[0];

export function shuffled<T>(random: Random, values: readonly T[]): T[] {
  const result = [...values];
  for (let last = result.length - 1; last > 0; last -= 1) {
    const other = random.int(last + 1);
    [result[last], result[other]] = [result[other] as T, result[last] as T];
  }
  return result;
}
