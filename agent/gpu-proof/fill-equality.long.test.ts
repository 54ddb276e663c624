/** Compares the proof program, compiled for a host, with the verifier over 1,000 random challenges, byte for byte. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { ReadFill } from '#shared/api/agent/challenges.ts';
import { firstState, leafAt, leavesOf, nextState } from '#shared/proof-of-work/fill.ts';
import { pathOf, rootOf } from '#shared/proof-of-work/merkle.ts';
import { systemRandom as random } from '#shared/runtime/random.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { filledFrom, fillTree, leafIn } from '../../test/fakes/agents/host-program.ts';
import { compileProof } from '../../test/fakes/agents/proof-binary.ts';

const CHALLENGES = 1_000;
const BOUNDS = { timeoutMs: 20_000, maxOutputBytes: 1_000_000 };
const STEPS = 20;
const LANE_STEP = 64;
const Root = z.object({ root: z.string() });
const States = ReadFill.pick({ states: true });
const Leaves = ReadFill.pick({ leaves: true });

let folder: string;
let program: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-fill-'));
  program = await compileProof(folder);
}, 180_000);
afterAll(() => rmSync(folder, { recursive: true }));

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

it(`the program equals the verifier over ${CHALLENGES} random challenges`, async () => {
  for (let challenge = 0; challenge < CHALLENGES; challenge += 1) {
    const [seed, nonce] = [random.bytes(32), random.bytes(32)];
    // One lane of two steps, or two lanes of one.
    const lanes = 1 + random.int(2);
    const layout = { lanes, laneBlocks: (2 * LANE_STEP) / lanes };
    const memory = filledFrom(seed, layout);
    const tree = fillTree(memory);
    let state = firstState(nonce, rootOf(tree));
    const states = Array.from({ length: STEPS }, () => {
      state = nextState(state, leafIn(memory, leafAt(state, layout)));
      return hex(state);
    });
    const indices = Array.from({ length: leavesOf(layout) }, (_, index) => index);
    const input = [
      `fill ${layout.lanes} ${layout.laneBlocks} ${hex(seed)}`,
      `walk ${hex(nonce)} ${STEPS}`,
      `leaves ${indices.join(',')}`,
    ].join('\n');
    const { stdout } = await runCommand(program, ['memory'], { ...BOUNDS, input: `${input}\n` });
    const lines = stdout
      .trim()
      .split('\n')
      .map((line): unknown => JSON.parse(line));
    expect(Root.parse(lines[0]).root).toBe(hex(rootOf(tree)));
    expect(States.parse(lines[1]).states).toEqual(states);
    expect(Leaves.parse(lines[2]).leaves).toEqual(
      indices.map((index) => ({
        index,
        bytes: leafIn(memory, index).toString('base64'),
        path: pathOf(tree, index).map(hex),
      })),
    );
  }
}, 1_200_000);
