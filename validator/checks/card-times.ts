/** Time in which cards of a model should pass their proof of work, whatever other hosts need. Pure. */
import { z } from 'zod';
import { CardUuid } from '#shared/api/agent/challenges.ts';
import type { Inventory } from '#shared/api/agent/inventory.ts';

const MAX_TOPS = 1_000_000;
const MAX_SOURCE_CHARS = 200;

/** Speed of a model: the published peak of byte products, and the time of the proof once it was measured. */
export const CardSpeed = z.strictObject({
  /** Peak of byte products on dense matrices, 10^12 operations per second. */
  int8_tops: z.number().positive().max(MAX_TOPS),
  /** Document with the peak. */
  source: z.string().min(1).max(MAX_SOURCE_CHARS),
  /** Milliseconds of the full proof on a card without other work, without the start of its container. */
  measured_ms: z.int().min(1).max(600_000).optional(),
});
export type CardSpeed = z.output<typeof CardSpeed>;

/** Operations of the full proof's products: 256 products of 8,192 × 8,192 matrices. */
export const PROOF_OPERATIONS = 256 * 2 * 8_192 ** 3;
/**
 * Share of the peak that a model is expected to reach until it was measured: half of what an H100 reaches with all parts
 * of a product, which are matrices from a seed, multiplication and hash tree.
 */
export const EXPECTED_SHARE = 0.07;
/** Milliseconds until the program runs in its container. */
const START_MS = 1_000;
/** Milliseconds of the fill until it was measured: twice the time of an H100, because its time depends on latency. */
const FILL_MS = 2_000;
const TERA = 1e12;
const MS_PER_SECOND = 1_000;

/** Milliseconds of the full proof on a card of the model, with the start of its container. */
export function expectedMsOf({ int8_tops, measured_ms }: CardSpeed): number {
  const productMs = (PROOF_OPERATIONS / (int8_tops * TERA * EXPECTED_SHARE)) * MS_PER_SECOND;
  return START_MS + (measured_ms ?? FILL_MS + productMs);
}

/**
 * Returns the expected time of an inventory's slowest card, because all cards prove at the same time; null if the policy
 * does not know a model. `undefined` if the policy has no times, as in files of older versions.
 */
export function cardsMsOf(
  { gpu }: Inventory,
  times: Readonly<Record<string, CardSpeed>> | null,
): number | null | undefined {
  if (times === null) return undefined;
  const cards = gpu.devices.filter(({ uuid }) => CardUuid.safeParse(uuid).success);
  const expected = cards
    .map(({ name }) => times[name])
    .map((speed) => speed && expectedMsOf(speed));
  return expected.reduce<number | null>(
    (slowest, ms) => (slowest === null || ms === undefined ? null : Math.max(slowest, ms)),
    0,
  );
}
