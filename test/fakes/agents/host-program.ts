/** A proof program that runs on the test's processor, without containers: proves cards, memory and disk honestly. */
import {
  blocksOf,
  FILL_BLOCK_BYTES,
  FILL_LEAF_BYTES,
  type FillLayout,
  fillBlock,
  firstState,
  leafAt,
  nextState,
  sourcesOf,
} from '#shared/proof-of-work/fill.ts';
import {
  leafHash,
  type MerkleTree,
  merkleTree,
  pathOf,
  rootOf,
} from '#shared/proof-of-work/merkle.ts';
import { matrixRows, productRow, rowBytes } from '#shared/proof-of-work/product.ts';
import { nextSeed } from '#shared/proof-of-work/seed.ts';
import type {
  ProgramSession,
  ProofProgram,
} from '../../../agent/verify/challenges/proof-program.ts';

type Program = Pick<ProofProgram, 'image' | 'hasCards' | 'start' | 'removeLeftovers'>;

/** A host without the program for proofs. */
export const NO_PROGRAM: Program = {
  image: async () => null,
  hasCards: false,
  start: async () => ({ done: hostSession() }),
  removeLeftovers: async () => undefined,
};

/** A host that proves its work honestly. `onEnd` is called when a session ends. */
export function hostProgram(onEnd: () => void = () => undefined): Program {
  return {
    image: async () => 'sha256:here',
    hasCards: true,
    start: async () => ({ done: hostSession(onEnd) }),
    removeLeftovers: async () => undefined,
  };
}

function hostSession(onEnd: () => void = () => undefined): ProgramSession {
  let size = 0;
  let memory: Buffer = Buffer.alloc(0);
  let layout: FillLayout = { lanes: 0, laneBlocks: 0 };
  let tree: MerkleTree = [];
  return {
    async fill(asked) {
      layout = asked.layout;
      memory = filledFrom(asked.seed, layout);
      tree = fillTree(memory);
      return { done: { root: hex(rootOf(tree)), fill_ms: 0 } };
    },
    async product({ n, rounds, seed }) {
      size = n;
      const roots: string[] = [];
      let next = seed;
      for (let round = 0; round < rounds; round += 1) {
        const root = rootOf(rowTree(rowsOf(next, n)));
        roots.push(hex(root));
        next = nextSeed(next, root);
      }
      return { done: { roots, ms: 0 } };
    },
    async rows(rounds) {
      const done = rounds.flatMap(({ round, seed, indices }) => {
        const rows = rowsOf(seed, size);
        const tree = rowTree(rows);
        return indices.map((index) => ({
          round,
          index,
          sums: rows[index]?.toString('base64') ?? '',
          path: pathOf(tree, index).map(hex),
        }));
      });
      return { done };
    },
    async walk({ nonce, steps }) {
      let state = firstState(Buffer.from(nonce, 'hex'), rootOf(tree));
      const states: string[] = [];
      for (let step = 0; step < steps; step += 1) {
        state = nextState(state, leafIn(memory, leafAt(state, layout)));
        states.push(hex(state));
      }
      return { done: states };
    },
    async leaves(indices) {
      const done = indices.map((index) => ({
        index,
        bytes: leafIn(memory, index).toString('base64'),
        path: pathOf(tree, index).map(hex),
      }));
      return { done };
    },
    end: async () => onEnd(),
  };
}

/** Number of parts of a lane; a block refers to other lanes only in earlier parts. */
const SLICES = 16;

/** Computes all blocks, in the order in which a prover must. */
export function filledFrom(seed: Uint8Array, layout: FillLayout): Buffer {
  const { lanes, laneBlocks } = layout;
  const memory = Buffer.alloc(blocksOf(layout) * FILL_BLOCK_BYTES);
  const blockIn = (index: number) =>
    memory.subarray(index * FILL_BLOCK_BYTES, (index + 1) * FILL_BLOCK_BYTES);
  const slice = laneBlocks / SLICES;
  for (let from = 0; from < laneBlocks; from += slice) {
    for (let lane = 0; lane < lanes; lane += 1) {
      const first = lane * laneBlocks + from;
      for (let block = first; block < first + slice; block += 1) {
        const { previous, parent } = sourcesOf(seed, layout, block);
        const sources = {
          previous: previous === null ? null : blockIn(previous),
          parent: parent === null ? null : blockIn(parent),
        };
        blockIn(block).set(fillBlock(seed, block, sources));
      }
    }
  }
  return memory;
}

export const leafIn = (memory: Buffer, index: number): Buffer =>
  memory.subarray(index * FILL_LEAF_BYTES, (index + 1) * FILL_LEAF_BYTES);

export const fillTree = (memory: Buffer): MerkleTree =>
  merkleTree(
    Array.from({ length: memory.length / FILL_LEAF_BYTES }, (_, index) =>
      leafHash(index, leafIn(memory, index)),
    ),
  );

function rowsOf(seed: Uint8Array, n: number): Buffer[] {
  const b = matrixRows(seed, 'B', { n, from: 0, to: n });
  return Array.from({ length: n }, (_, index) =>
    rowBytes(productRow(matrixRows(seed, 'A', { n, from: index, to: index + 1 }), b)),
  );
}

const rowTree = (rows: readonly Uint8Array[]) =>
  merkleTree(rows.map((row, index) => leafHash(index, row)));

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
