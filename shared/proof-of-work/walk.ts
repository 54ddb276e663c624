/**
 * A walk over memory or a disk that is filled from a seed: the index of each block depends on the content of the
 * previous one. A prover that has stored the bytes walks at the speed of its storage; the verifier computes only the
 * visited blocks. The walk proves that the bytes were available in that time, not where they were stored.
 */
import { createHash } from 'node:crypto';
import { keystream } from './keystream.ts';

const PLACE_BYTES = 6;

export type Walk = {
  blockBytes: number;
  /** Number of filled blocks. */
  blocks: number;
  steps: number;
};

/** Returns the final hash of the walk; `read` returns the block at an index. */
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

/** Returns `count` blocks of the fill, beginning with block `from`. */
export function filledBlocks(
  seed: Uint8Array,
  { blockBytes }: Pick<Walk, 'blockBytes'>,
  { from, count }: { from: number; count: number },
): Buffer {
  return keystream(seed, from * blockBytes, count * blockBytes);
}
