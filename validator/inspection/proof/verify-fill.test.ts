import { beforeAll, expect, it } from 'vitest';
import type { OpenedLeaf } from '#shared/api/agent/challenges.ts';
import {
  blocksOf,
  FILL_BLOCK_BYTES,
  firstState,
  leafAt,
  nextState,
} from '#shared/proof-of-work/fill.ts';
import { pathOf, rootOf } from '#shared/proof-of-work/merkle.ts';
import { filledFrom, fillTree, leafIn } from '../../../test/fakes/agents/host-program.ts';
import { faultInFill, leavesFor } from './verify-fill.ts';

const SEED = Buffer.alloc(32, 7);
const NONCE = Buffer.alloc(32, 9);
const LAYOUT = { lanes: 2, laneBlocks: 128 };
const STEPS = 8;
const ALL = {
  blocks: Array.from({ length: blocksOf(LAYOUT) }, (_, block) => block),
  steps: Array.from({ length: STEPS }, (_, step) => step),
};

let honest: Buffer;
beforeAll(() => {
  honest = filledFrom(SEED, LAYOUT);
});

/** Commitment, walk and opened leaves of a prover with this memory, which walks over `walked`. */
function prove(memory: Buffer, walked = memory, chosen = ALL) {
  const tree = fillTree(memory);
  const root = rootOf(tree);
  const states: Uint8Array[] = [];
  let state = firstState(NONCE, root);
  for (let step = 0; step < STEPS; step += 1) {
    state = nextState(state, leafIn(walked, leafAt(state, LAYOUT)));
    states.push(state);
  }
  const walk = { nonce: NONCE, states };
  const committed = { seed: SEED, layout: LAYOUT, root };
  const opened = leavesFor(committed, walk, chosen).map((index): OpenedLeaf => {
    const path = pathOf(tree, index).map((hash) => Buffer.from(hash).toString('hex'));
    return { index, bytes: leafIn(memory, index).toString('base64'), path };
  });
  return { committed, walk, chosen, opened };
}

const faultOf = ({ committed, walk, chosen, opened }: ReturnType<typeof prove>) =>
  faultInFill(committed, walk, chosen, opened);

it('accepts an honest fill and walk', () => {
  expect(faultOf(prove(honest))).toBeNull();
});

it('detects a block that is not computed from its sources, and only by this block or one that refers to it', () => {
  const memory = Buffer.from(honest);
  const wrong = 130;
  memory[wrong * FILL_BLOCK_BYTES] = (memory[wrong * FILL_BLOCK_BYTES] ?? 0) ^ 1;
  const chosen = (blocks: number[]) => ({ ...ALL, blocks });
  expect(faultOf(prove(memory, memory, chosen([wrong])))).toBe('wrong_block');
  expect(faultOf(prove(memory, memory, chosen([wrong + 1])))).toBe('wrong_block');
  expect(faultOf(prove(memory, memory, chosen([wrong - 1])))).toBeNull();
});

it('detects zeros instead of a fill, and a fill of another seed', () => {
  expect(faultOf(prove(Buffer.alloc(honest.length)))).toBe('wrong_block');
  expect(faultOf(prove(filledFrom(Buffer.alloc(32, 8), LAYOUT)))).toBe('wrong_block');
});

it('detects a walk over other bytes than the committed ones, from each step', () => {
  const walked = prove(honest, Buffer.alloc(honest.length));
  expect(faultOf(walked)).toBe('wrong_step');
  for (const step of ALL.steps) {
    const chosen = { blocks: [], steps: [step] };
    expect(faultOf(prove(honest, Buffer.alloc(honest.length), chosen))).toBe('wrong_step');
  }
});

it('detects leaves that were changed after the commitment', () => {
  const proof = prove(honest);
  const change = (index: number, bytes: Partial<OpenedLeaf>) => ({
    ...proof,
    opened: proof.opened.map((leaf, at) => (at === index ? { ...leaf, ...bytes } : leaf)),
  });
  const zeros = Buffer.alloc(leafIn(honest, 0).length).toString('base64');
  expect(faultOf(change(3, { bytes: zeros }))).toBe('not_committed');
  expect(faultOf(change(3, { path: [] }))).toBe('not_committed');
  expect(faultOf(change(3, { index: 4 }))).toBe('malformed');
  expect(faultOf({ ...proof, opened: proof.opened.slice(1) })).toBe('malformed');
  expect(faultOf({ ...proof, opened: proof.opened.toReversed() })).toBe('malformed');
});
