/** Verifies opened blocks and a walk of a filled memory or disk against the committed root. Pure. */
import type { OpenedLeaf } from '#shared/api/agent/challenges.ts';
import {
  FILL_BLOCK_BYTES,
  type FillLayout,
  fillBlock,
  firstState,
  leafAt,
  leafOf,
  leavesOf,
  nextState,
  offsetInLeaf,
  sourcesOf,
} from '#shared/proof-of-work/fill.ts';
import { leafHash, rootAlong } from '#shared/proof-of-work/merkle.ts';

export type CommittedFill = { seed: Uint8Array; layout: FillLayout; root: Uint8Array };

/** A walk as the prover reports it: the state after each step. */
export type Walked = { nonce: Uint8Array; states: readonly Uint8Array[] };

/** Blocks and steps that the verifier has chosen after the prover committed to them. */
export type ChosenParts = { blocks: readonly number[]; steps: readonly number[] };

/**
 * - `malformed`: the opened leaves are not the requested leaves
 * - `not_committed`: a leaf does not match the root
 * - `wrong_block`: a block is not computed from its sources
 * - `wrong_step`: a step does not lead from its state to the next
 */
export type FillFault = 'malformed' | 'not_committed' | 'wrong_block' | 'wrong_step';

/** Leaves that contain the chosen blocks, their sources and the leaves of the chosen steps; ascending, each once. */
export function leavesFor(
  { seed, layout, root }: CommittedFill,
  walked: Walked,
  { blocks, steps }: ChosenParts,
): number[] {
  const ofBlocks = blocks.flatMap((block) => {
    const { previous, parent } = sourcesOf(seed, layout, block);
    return [block, previous, parent].flatMap((each) => (each === null ? [] : [leafOf(each)]));
  });
  const ofSteps = steps.map((step) => leafAt(stateBefore(step, root, walked), layout));
  return [...new Set([...ofBlocks, ...ofSteps])].sort((one, other) => one - other);
}

/** Returns the first fault; null if all chosen blocks and steps are correct. */
export function faultInFill(
  committed: CommittedFill,
  walked: Walked,
  chosen: ChosenParts,
  opened: readonly OpenedLeaf[],
): FillFault | null {
  const asked = leavesFor(committed, walked, chosen);
  if (opened.length !== asked.length) return 'malformed';
  if (opened.some(({ index }, at) => index !== asked[at])) return 'malformed';
  const leaves = new Map(opened.map(({ index, bytes }) => [index, Buffer.from(bytes, 'base64')]));
  if (opened.some((leaf) => !isCommitted(committed, leaf, bytesIn(leaves, leaf.index)))) {
    return 'not_committed';
  }
  if (chosen.blocks.some((block) => !isComputed(committed, leaves, block))) return 'wrong_block';
  if (chosen.steps.some((step) => !isWalked(committed, leaves, walked, step))) return 'wrong_step';
  return null;
}

type Leaves = ReadonlyMap<number, Buffer>;

function bytesIn(leaves: Leaves, index: number): Buffer {
  const bytes = leaves.get(index);
  if (bytes === undefined) throw new RangeError(`leaf ${index} was not opened`);
  return bytes;
}

function isCommitted(
  { layout, root }: CommittedFill,
  { index, path }: OpenedLeaf,
  bytes: Buffer,
): boolean {
  const place = {
    index,
    count: leavesOf(layout),
    path: path.map((hash) => Buffer.from(hash, 'hex')),
  };
  const reached = rootAlong(leafHash(index, bytes), place);
  return reached !== null && Buffer.compare(reached, root) === 0;
}

function isComputed({ seed, layout }: CommittedFill, leaves: Leaves, block: number): boolean {
  const bytesOf = (index: number | null) => {
    if (index === null) return null;
    const from = offsetInLeaf(index);
    return bytesIn(leaves, leafOf(index)).subarray(from, from + FILL_BLOCK_BYTES);
  };
  const { previous, parent } = sourcesOf(seed, layout, block);
  const sources = { previous: bytesOf(previous), parent: bytesOf(parent) };
  return bytesOf(block)?.equals(fillBlock(seed, block, sources)) === true;
}

function isWalked(
  { layout, root }: CommittedFill,
  leaves: Leaves,
  walked: Walked,
  step: number,
): boolean {
  const before = stateBefore(step, root, walked);
  const after = nextState(before, bytesIn(leaves, leafAt(before, layout)));
  return Buffer.compare(after, stateAfter(step, walked)) === 0;
}

const stateBefore = (step: number, root: Uint8Array, walked: Walked): Uint8Array =>
  step === 0 ? firstState(walked.nonce, root) : stateAfter(step - 1, walked);

function stateAfter(step: number, { states }: Walked): Uint8Array {
  const state = states[step];
  if (state === undefined) throw new RangeError(`the walk has no step ${step}`);
  return state;
}
