/**
 * A walk over memory or a disk that was filled from a seed: each step's place is told by what the last one read.
 * Whoever holds the bytes walks at their speed; the verifier makes only the blocks that are visited. It shows that
 * the bytes could be had in that time, not where they lay.
 */
import { createHash } from 'node:crypto';
import { keystream } from './keystream.ts';

const PLACE_BYTES = 6;

export type Walk = {
  blockBytes: number;
  /** That are filled. */
  blocks: number;
  steps: number;
};

/** The hash that the walk ends with; `read` gives the block at an index. */
export async function walk(
  seed: Uint8Array,
  { blocks, steps }: Walk,
  read: (index: number) => Uint8Array | Promise<Uint8Array>,
): Promise<Buffer> {
  let state = createHash('sha256').update(seed).update('walk').digest();
  for (let step = 0; step < steps; step += 1) {
    const block = await read(state.readUIntBE(0, PLACE_BYTES) % blocks);
    state = createHash('sha256').update(state).update(block).digest();
  }
  return state;
}

/** `count` blocks of the fill from one on. */
export function filledBlocks(
  seed: Uint8Array,
  { blockBytes }: Pick<Walk, 'blockBytes'>,
  { from, count }: { from: number; count: number },
): Buffer {
  return keystream(seed, from * blockBytes, count * blockBytes);
}
