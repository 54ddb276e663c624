/**
 * CPU cost of verifying proofs in the validator, and what a prover pays that keeps a tenth of its fill. The provers of a
 * fill are compiled C++ programs.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { type OpenedLeaf, type OpenedRow, ReadFill } from '#shared/api/agent/challenges.ts';
import { blocksOf, type FillLayout } from '#shared/proof-of-work/fill.ts';
import {
  leafHash,
  type MerkleTree,
  merkleTree,
  pathOf,
  rootOf,
} from '#shared/proof-of-work/merkle.ts';
import { matrixRows, productRow, rowBytes } from '#shared/proof-of-work/product.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { faultInRows } from '../../validator/inspection/proof/verify.tasks.ts';
import { faultInFill, leavesFor } from '../../validator/inspection/proof/verify-fill.ts';
import { compileProof } from '../fakes/agents/proof-binary.ts';
import { median, type Row, ratioAtLeast, ratioAtMost } from '../measure/row.ts';

const N = 4_096;
const OPENED = 16;
/** One of this many rows is computed and its time multiplied: computing all rows takes a minute. */
const EVERY = 16;
const MS_PER_SECOND = 1_000;
const MAX_SHARE = 0.05;

/** Fill of the cost of verification: 256 MiB. */
const FILL: FillLayout = { lanes: 1, laneBlocks: 262_144 };
/** Verified parts of a fill, as in an inspection. */
/** Size of a card's product. */
const CARD_N = 8_192;
const RUNS = 9;
const BLOCKS = 64;
const STEPS = 32;
const WALK_STEPS = 4_096;
const MAX_VERIFICATION_SHARE = 0.5;
const MICROSECONDS_PER_SECOND = 1_000_000;

/** Fills of a prover with a tenth of the memory: the walk alone, and with a tenth of the memory from the start. */
const KEPT_TENTH = ['1', '131072', '16'];
const TENTH_FROM_START = ['1', '4096', '64', 'from-start'];
const LEAST_FACTOR = 5;
const BOUNDS = { timeoutMs: 300_000, maxOutputBytes: 10_000_000 };

export async function proofOfWork(): Promise<Row[]> {
  return [productCost(), ...(await fillRows())];
}

async function fillRows(): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-bench-'));
  try {
    const honest = await compileProof(folder);
    const cost = await verificationOf(honest);
    const cheat = await compileProof(folder, join(import.meta.dirname, 'fill-tenth.cc'));
    return [
      cost,
      await tenthRow(cheat, 'fill-tenth: reading back', KEPT_TENTH),
      await tenthRow(cheat, 'fill-tenth: filling and reading back', TENTH_FROM_START),
    ];
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const Times = z.object({ honest_s: z.number(), tenth_s: z.number() });

async function tenthRow(program: string, name: string, argv: string[]): Promise<Row> {
  const { stdout } = await runCommand(program, argv, BOUNDS);
  const { honest_s, tenth_s } = Times.parse(JSON.parse(stdout));
  const measured = { ours: tenth_s, reference: honest_s };
  return ratioAtLeast(name, 's', 'a prover with all of the memory', measured, LEAST_FACTOR);
}

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');
const Root = z.object({ root: z.string() });
const States = ReadFill.pick({ states: true });
const Leaves = ReadFill.pick({ leaves: true });

/**
 * CPU seconds of verifying the fill and the products of one card: the median, as a validator verifies many. The reference
 * is the time in which the compiled prover writes and walks the same fill on one core.
 */
async function verificationOf(program: string): Promise<Row> {
  const [seed, nonce] = [systemRandom.bytes(32), systemRandom.bytes(32)];
  const fill = `fill ${FILL.lanes} ${FILL.laneBlocks} ${hex(seed)}`;
  const walk = `walk ${hex(nonce)} ${WALK_STEPS}`;
  const answersTo = async (...lines: string[]) => {
    const input = `${[fill, walk, ...lines].join('\n')}\n`;
    const { stdout } = await runCommand(program, ['memory'], { ...BOUNDS, input });
    const answers = stdout.trim().split('\n');
    return answers.map((line): unknown => JSON.parse(line));
  };
  const beganMs = systemClock.monotonicMs();
  const [filled, walkedAnswer] = await answersTo();
  const reference = (systemClock.monotonicMs() - beganMs) / MS_PER_SECOND;
  const root = Buffer.from(Root.parse(filled).root, 'hex');
  const states = States.parse(walkedAnswer).states.map((state) => Buffer.from(state, 'hex'));
  const committed = { seed, layout: FILL, root };
  const walked = { nonce, states };
  const several = (count: number, below: number) =>
    Array.from({ length: count }, () => systemRandom.int(below));
  const chosen = { blocks: several(BLOCKS, blocksOf(FILL)), steps: several(STEPS, WALK_STEPS) };
  const leaves = leavesFor(committed, walked, chosen);
  const [, , openedAnswer] = await answersTo(`leaves ${leaves.join(',')}`);
  const opened: OpenedLeaf[] = Leaves.parse(openedAnswer).leaves;

  const verifyCardProduct = cardProduct();
  const verify = () => {
    leavesFor(committed, walked, chosen);
    const fault = faultInFill(committed, walked, chosen, opened);
    if (fault !== null) throw new Error(`an honest fill is ${fault}`);
    verifyCardProduct();
  };
  const seconds = Array.from({ length: RUNS }, () => cpuSecondsOf(verify));
  const measured = { ours: median(seconds), reference };
  const name = 'proof-verify-fill: CPU of one card';
  return ratioAtMost(name, 's', 'proving the fill', measured, MAX_VERIFICATION_SHARE);
}

/** Returns a function that verifies the products of a card as an inspection does: rows of one round. */
function cardProduct(): () => void {
  const seed = systemRandom.bytes(32);
  const indices = Array.from({ length: OPENED }, (_, at) => at * EVERY);
  const product = productOf(seed, CARD_N, indices);
  const rows = openedRows(product, indices);
  const committed = { seed, n: CARD_N, root: rootOf(product.tree) };
  return () => {
    const fault = faultInRows(committed, indices, rows, systemRandom);
    if (fault !== null) throw new Error(`honest rows are ${fault}`);
  };
}

function cpuSecondsOf(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / MICROSECONDS_PER_SECOND;
}

function productCost(): Row {
  const seed = systemRandom.bytes(32);
  const every = Array.from({ length: N / EVERY }, (_, at) => at * EVERY);
  const computed = timed(() => productOf(seed, N, every));
  const indices = every.slice(0, OPENED);
  const opened = openedRows(computed.result, indices);
  const root = rootOf(computed.result.tree);
  const verified = timed(() => faultInRows({ seed, n: N, root }, indices, opened, systemRandom));
  if (verified.result !== null) throw new Error(`honest rows are ${verified.result}`);
  const measured = { ours: verified.seconds, reference: computed.seconds * EVERY };
  const against = `computing it on one core, estimated from every ${EVERY}th row`;
  return ratioAtMost(`verifying a product of ${N}²`, 's', against, measured, MAX_SHARE);
}

type Product = { rows: Map<number, Buffer>; tree: MerkleTree };

/** Some rows of a product, with a hash tree root that is valid for those rows only. */
function productOf(seed: Uint8Array, n: number, indices: readonly number[]): Product {
  const b = matrixRows(seed, 'B', { n, from: 0, to: n });
  const rows = new Map<number, Buffer>();
  for (const index of indices) {
    const aRow = matrixRows(seed, 'A', { n, from: index, to: index + 1 });
    rows.set(index, rowBytes(productRow(aRow, b)));
  }
  const none = Buffer.alloc(0);
  const leaves = Array.from({ length: n }, (_, index) => leafHash(index, rows.get(index) ?? none));
  return { rows, tree: merkleTree(leaves) };
}

const openedRows = ({ rows, tree }: Product, indices: readonly number[]): OpenedRow[] =>
  indices.map((index) => ({
    round: 0,
    index,
    sums: rows.get(index)?.toString('base64') ?? '',
    path: pathOf(tree, index).map(hex),
  }));

function timed<T>(work: () => T): { result: T; seconds: number } {
  const beganMs = systemClock.monotonicMs();
  const result = work();
  return { result, seconds: (systemClock.monotonicMs() - beganMs) / MS_PER_SECOND };
}
