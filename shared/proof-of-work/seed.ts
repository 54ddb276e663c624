/** Seeds of proofs: unpredictable before the challenge, and different for every device. */
import { createHash } from 'node:crypto';

const TEXT = 'podwright-pow-v1';

export type Purpose = 'product' | 'memory' | 'disk';

export type SeedParts = {
  /** Random value that the validator chose for the challenge. */
  nonce: string;
  executorId: string;
  /** UUID of a GPU, or `cpu`, `memory`, `disk`. */
  device: string;
  purpose: Purpose;
};

/** Returns 32 bytes: SHA-256 over LF-separated fields. Throws if a field contains a line feed. */
export function seedOf({ nonce, executorId, device, purpose }: SeedParts): Buffer {
  const fields = [TEXT, nonce, executorId, device, purpose];
  if (fields.some((field) => field.includes('\n')))
    throw new RangeError('a field contains a line feed');
  return createHash('sha256').update(fields.join('\n')).digest();
}

/** Derives the seed of a part, such as a matrix. */
export function partSeed(seed: Uint8Array, part: string): Buffer {
  return createHash('sha256').update(seed).update(part).digest();
}

/** Returns the seed of each round: every root but the last determines the next. */
export function roundSeeds(first: Uint8Array, roots: readonly Uint8Array[]): Uint8Array[] {
  const seeds: Uint8Array[] = [];
  let seed = first;
  for (const root of roots) {
    seeds.push(seed);
    seed = nextSeed(seed, root);
  }
  return seeds;
}

/** Returns the seed of the next round, which cannot begin before this round's root is known. */
export function nextSeed(seed: Uint8Array, root: Uint8Array): Buffer {
  return createHash('sha256').update(seed).update(root).digest();
}
