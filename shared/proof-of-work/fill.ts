/**
 * A fill of memory or a disk: blocks that can only be computed one after the other, each from two earlier ones. The
 * prover computes all blocks and commits to them with a hash tree. The verifier computes no blocks except opened ones,
 * from the opened blocks they refer to. `agent/gpu-proof/fill.h` is the prover.
 */
import { createHash } from 'node:crypto';
import { SEED_BYTES } from './keystream.ts';

export const FILL_BLOCK_BYTES = 1_024;
/** Blocks that the hash tree covers with one leaf. */
const LEAF_BLOCKS = 4;
export const FILL_LEAF_BYTES = LEAF_BLOCKS * FILL_BLOCK_BYTES;
/** Parts of a lane. A block refers to other lanes only in earlier slices, so that all lanes fill a slice at once. */
const SLICES = 16;
/** Unit of the blocks of a lane, so that slices begin with a leaf. */
export const LANE_STEP = SLICES * LEAF_BLOCKS;

/** Lanes are filled at the same time, the blocks of a lane in sequence. */
export type FillLayout = { lanes: number; laneBlocks: number };

/** A block, as 64-bit words. */
type Block = BigUint64Array;
const WORDS = FILL_BLOCK_BYTES / BigUint64Array.BYTES_PER_ELEMENT;
const SEED_WORDS = SEED_BYTES / BigUint64Array.BYTES_PER_ELEMENT;
const DRAWS = { magnitude: 0, distance: 1, lane: 2 } as const;

export const blocksOf = ({ lanes, laneBlocks }: FillLayout): number => lanes * laneBlocks;
export const leavesOf = (layout: FillLayout): number => blocksOf(layout) / LEAF_BLOCKS;
export const leafOf = (block: number): number => Math.floor(block / LEAF_BLOCKS);

/** Offset of a block in its leaf, bytes. */
export const offsetInLeaf = (block: number): number => (block % LEAF_BLOCKS) * FILL_BLOCK_BYTES;

/**
 * Blocks from which a block is computed: the previous one of its lane, and one that the seed determines. Null: the first
 * block of a lane has neither, the second has only the first.
 *
 * The distance to the second is distributed as in DRSample: first its magnitude, then the distance. Most distances are
 * short, so that recomputing a block requires a long sequence of others.
 */
export function sourcesOf(
  seed: Uint8Array,
  layout: FillLayout,
  block: number,
): { previous: number | null; parent: number | null } {
  const { lanes, laneBlocks } = layout;
  const at = block % laneBlocks;
  if (at === 0) return { previous: null, parent: null };
  const previous = block - 1;
  if (at === 1) return { previous, parent: null };
  const draw = drawsOf(seed, block);
  const most = 2 << draw(DRAWS.magnitude, Math.floor(Math.log2(at)));
  const least = Math.max(2, most / 2);
  const from = at - (least + draw(DRAWS.distance, most - least + 1));
  const slice = laneBlocks / SLICES;
  const isOwn = from >= Math.floor(at / slice) * slice;
  const lane = isOwn ? Math.floor(block / laneBlocks) : draw(DRAWS.lane, lanes);
  return { previous, parent: lane * laneBlocks + from };
}

/** Pseudo-random numbers of a block, below a bound. */
function drawsOf(seed: Uint8Array, block: number) {
  const base = new DataView(seed.buffer, seed.byteOffset).getBigUint64(0, true);
  return (which: number, below: number): number => {
    const word = wrap(base + scatter(BigInt(block) * 4n + BigInt(which) + 1n));
    return Number(scatter(word) % BigInt(below));
  };
}

const wrap = (x: bigint): bigint => BigInt.asUintN(64, x);

/** The finalizer of SplitMix64, a bijection of 64-bit words. */
function scatter(x: bigint): bigint {
  const once = wrap((x ^ (x >> 30n)) * 0xbf58_476d_1ce4_e5b9n);
  const twice = wrap((once ^ (once >> 27n)) * 0x94d0_49bb_1331_11ebn);
  return twice ^ (twice >> 31n);
}

/** Computes a block from the bytes of its sources. */
export function fillBlock(
  seed: Uint8Array,
  block: number,
  { previous, parent }: { previous: Uint8Array | null; parent: Uint8Array | null },
): Buffer {
  const [seeds, ...sources] = [seed, previous, parent].map((bytes) => bytes && wordsOf(bytes));
  const input = new BigUint64Array(WORDS);
  for (let at = 0; at < WORDS; at += 1) {
    input[at] = sources.reduce((word, source) => word ^ (source?.[at] ?? 0n), 0n);
    if (at < SEED_WORDS) input[at] = (input[at] ?? 0n) ^ (seeds?.[at] ?? 0n);
    if (at === SEED_WORDS) input[at] = (input[at] ?? 0n) ^ BigInt(block);
  }
  const mixed = permuted(input);
  for (let at = 0; at < WORDS; at += 1) mixed[at] = (mixed[at] ?? 0n) ^ (input[at] ?? 0n);
  return bytesOf(mixed);
}

/** The permutation of Argon2 (RFC 9106, 3.6): a round of BLAKE2b over each row of 16 words, then over each column. */
function permuted(input: Block): Block {
  const block = input.slice();
  for (let line = 0; line < 8; line += 1) round(block, (word) => 16 * line + word);
  for (let line = 0; line < 8; line += 1) {
    round(block, (word) => 2 * line + 16 * Math.floor(word / 2) + (word % 2));
  }
  return block;
}

/** Mixes 16 words as a square: its four columns, then its diagonals. */
function round(block: Block, place: (word: number) => number): void {
  for (const turn of [0, 1]) {
    for (let column = 0; column < 4; column += 1) {
      const at = (row: number) => place(4 * row + ((column + row * turn) % 4));
      quarter(block, [at(0), at(1), at(2), at(3)]);
    }
  }
}

function quarter(block: Block, [a, b, c, d]: [number, number, number, number]): void {
  for (const [first, second] of [
    [32n, 24n],
    [16n, 63n],
  ] as const) {
    half(block, [a, b, d], first);
    half(block, [c, d, b], second);
  }
}

/** Adds `b` to `a` with their product, and rotates `d`. */
function half(block: Block, [a, b, d]: [number, number, number], by: bigint): void {
  const [x, y] = [block[a] ?? 0n, block[b] ?? 0n];
  // Writing to the array keeps the low 64 bits.
  block[a] = x + y + 2n * (x & 0xffff_ffffn) * (y & 0xffff_ffffn);
  const turned = (block[d] ?? 0n) ^ (block[a] ?? 0n);
  block[d] = (turned >> by) | (turned << (64n - by));
}

function wordsOf(bytes: Uint8Array): Block {
  const buffer = Buffer.from(bytes);
  const count = bytes.length / BigUint64Array.BYTES_PER_ELEMENT;
  return BigUint64Array.from({ length: count }, (_, at) => buffer.readBigUInt64LE(8 * at));
}

function bytesOf(block: Block): Buffer {
  const bytes = Buffer.alloc(FILL_BLOCK_BYTES);
  for (const [at, word] of block.entries()) bytes.writeBigUInt64LE(word, 8 * at);
  return bytes;
}

const PLACE_BYTES = 6;

/**
 * State before the first step of a walk over the leaves. Each state determines the leaf of the next step, so that the
 * steps can only be made one after the other. `nonce` is chosen after the root is known.
 */
export const firstState = (nonce: Uint8Array, root: Uint8Array): Buffer =>
  createHash('sha256').update(nonce).update(root).digest();

/** Index of the leaf that a step reads. */
export const leafAt = (state: Uint8Array, layout: FillLayout): number =>
  Buffer.from(state).readUIntBE(0, PLACE_BYTES) % leavesOf(layout);

/** State after a step that has read a leaf. */
export const nextState = (state: Uint8Array, leaf: Uint8Array): Buffer =>
  createHash('sha256').update(state).update(leaf).digest();
