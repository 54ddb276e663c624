/** Where every proof begins: nobody can know it before the challenge, and no two devices share one. */
import { createHash } from 'node:crypto';

const TEXT = 'podwright-pow-v1';

export type Purpose = 'product' | 'memory' | 'disk';

export type SeedParts = {
  /** The challenge's, chosen by the validator. */
  nonce: string;
  executorId: string;
  /** UUID of a GPU, or `cpu`, `memory`, `disk`. */
  device: string;
  purpose: Purpose;
};

/** 32 bytes: SHA-256 over LF-separated fields, none of which holds a line feed. */
export function seedOf({ nonce, executorId, device, purpose }: SeedParts): Buffer {
  const fields = [TEXT, nonce, executorId, device, purpose];
  if (fields.some((field) => field.includes('\n'))) throw new RangeError('a field spans lines');
  return createHash('sha256').update(fields.join('\n')).digest();
}

/** A seed of its own for one part of what a seed is for. */
export function partSeed(seed: Uint8Array, part: string): Buffer {
  return createHash('sha256').update(seed).update(part).digest();
}

/** Of each round: every root but the last begins another. */
export function roundSeeds(first: Uint8Array, roots: readonly Uint8Array[]): Uint8Array[] {
  const seeds: Uint8Array[] = [];
  let seed = first;
  for (const root of roots) {
    seeds.push(seed);
    seed = nextSeed(seed, root);
  }
  return seeds;
}

/** Of the round after the one with that root: it cannot be begun before. */
export function nextSeed(seed: Uint8Array, root: Uint8Array): Buffer {
  return createHash('sha256').update(seed).update(root).digest();
}
