/** Runs the proof program, compiled for a host, in real containers and compares it with shared/proof-of-work byte for byte. */
import { copyFileSync, createReadStream, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { CARD_FAULTS, type FilledDevice } from '#shared/api/agent/challenges.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { hostProgram } from '../../test/fakes/agents/host-program.ts';
import { compileProof } from '../../test/fakes/agents/proof-binary.ts';
import { mustRun } from '../../test/fakes/agents/real-host.ts';
import { createDockerodeEngine } from '../containers/engine/dockerode-engine.ts';
import { type ContainerEngine, type ContainerSpec, LABELS } from '../containers/engine/engine.ts';
import { createExecEngine } from '../containers/engine/exec.ts';
import {
  createProofProgram,
  type ProgramSession,
  type Run,
} from '../verify/challenges/proof-program.ts';

const UUID = 'GPU-3f9f41a6-0001-4000-8000-000000000001';
const BOUNDS = { timeoutMs: 120_000, maxOutputBytes: 1_000_000 };
const PRODUCT = { n: 112, rounds: 3, seed: systemRandom.bytes(32) };
const FILL = { layout: { lanes: 3, laneBlocks: 64 }, seed: systemRandom.bytes(32) };
const NONCE = Buffer.from(systemRandom.bytes(32)).toString('hex');
const NEVER = new AbortController().signal;

const connection = { socketPath: '/var/run/docker.sock', clock: systemClock };
const engine = createDockerodeEngine(connection);
const executorId = systemRandom.uuid();
const reference = `podwright.local/gpu-proof-test:${executorId}`;
const labels = { [LABELS.executor]: executorId };
let folder: string;
let program: string;
/** Container specs requested from the engine. */
let specs: ContainerSpec[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-gpu-proof-'));
  program = await compileProof(folder);
  copyFileSync(program, join(folder, 'proof-host'));
  mkdirSync(join(folder, 'tmp'), { mode: 0o1777 });
  const tar = join(folder, 'image.tar');
  await mustRun('chmod', '1777', join(folder, 'tmp'));
  await mustRun('tar', '-C', folder, '-cf', tar, 'proof', 'proof-host', 'tmp');
  await engine.importImage(createReadStream(tar), reference, [
    'USER 65534:65534',
    `LABEL ${LABELS.managed}=1`,
  ]);
}, 180_000);
afterAll(async () => {
  for (const { id } of await engine.listContainers(labels)) await engine.removeContainer(id);
  await engine.removeImage(reference);
  rmSync(folder, { recursive: true });
});

/** Drops GPU requests, which an engine on a host without cards rejects. */
function programOn({ gpus }: { gpus: boolean }) {
  const watched: Pick<ContainerEngine, 'createContainer'> = {
    createContainer(spec) {
      specs.push(spec);
      const own = { ...spec.labels, 'io.podwright.test-run': inject('testRun') };
      return engine.createContainer({ ...spec, labels: own, gpuUuids: gpus ? spec.gpuUuids : [] });
    },
  };
  specs = [];
  return createProofProgram({
    executorId,
    random: systemRandom,
    gpu: { kind: 'nvidia' },
    engine: { ...engine, ...watched },
    image: reference,
    execEngine: async () => createExecEngine(connection),
  });
}

const runOf = (image: string | null, signal = NEVER): Run => ({
  image: image ?? 'none',
  deadlineMs: 60_000,
  signal,
});

/** Starts the program on a device. */
async function sessionOn(device: FilledDevice): Promise<ProgramSession> {
  const proof = programOn({ gpus: false });
  const started = await proof.start(device, FILL, runOf(await proof.image()));
  if ('fault' in started) throw new Error(started.fault.detail);
  return started.done;
}

/** Every answer of a program, without durations. */
async function answersOf(session: ProgramSession, { isCard }: { isCard: boolean }) {
  const rounds = [
    { round: 0, seed: PRODUCT.seed, indices: [0, 7, 111] },
    { round: 2, seed: FILL.seed, indices: [64] },
  ];
  const answers = [
    await session.fill(FILL, NEVER),
    ...(isCard ? [await session.product(PRODUCT, NEVER), await session.rows(rounds, NEVER)] : []),
    await session.walk({ nonce: NONCE, steps: 300 }, NEVER),
    await session.leaves([0, 5, 47], NEVER),
  ];
  await session.end();
  const text = JSON.stringify(answers);
  return JSON.parse(text.replaceAll(/"(fill_ms|ms)":[0-9.]+/g, '"$1":0'));
}

async function expectedAnswers(isCard: boolean) {
  const started = await hostProgram().start(UUID, FILL, runOf(null));
  if ('fault' in started) throw new Error('no program');
  return answersOf(started.done, { isCard });
}

it.each<[FilledDevice, boolean]>([
  [UUID, true],
  ['memory', false],
  ['disk', false],
])(
  'computes the same as the verifier on %s, in a container without network',
  async (device, isCard) => {
    const answers = await answersOf(await sessionOn(device), { isCard });
    expect(answers).toEqual(await expectedAnswers(isCard));
    expect(specs).toMatchObject([{ network: null, gpuUuids: isCard ? [UUID] : [] }]);
    expect(specs[0]?.readOnlyRoot).toBe(device === 'disk' ? undefined : true);
    expect(specs[0]?.labels).toMatchObject({ [LABELS.managed]: '1', [LABELS.kind]: 'proof' });
    expect(await engine.listContainers(labels)).toEqual([]);
  },
);

it('reports a fault for a card that the engine rejects, and leaves no container', async () => {
  const proof = programOn({ gpus: true });
  const started = await proof.start(UUID, null, runOf(await proof.image()));
  expect(started).toMatchObject({ fault: { code: 'DEVICE_ABSENT' } });
  expect(await engine.listContainers(labels)).toEqual([]);
});

it('aborts at its deadline, and removes containers of a killed agent', async () => {
  const session = await sessionOn(UUID);
  const late = new AbortController();
  const endless = session.product({ ...PRODUCT, n: 8_192 }, late.signal);
  const ended = expect(endless).rejects.toThrow('too late');
  late.abort(new Error('too late'));
  await ended;
  await session.end();
  expect(await engine.listContainers(labels)).toEqual([]);

  const [spec] = specs;
  if (spec === undefined) throw new Error('no container');
  // This container is not removed; it exits after its time limit.
  const id = await engine.createContainer({
    ...spec,
    name: `${spec.name}-left`,
    gpuUuids: [],
    entrypoint: ['/proof', 'hold', '1'],
  });
  await engine.startContainer(id);
  expect(await engine.waitContainer(id, systemClock.deadline(20_000))).toBe(0);
  await programOn({ gpus: false }).removeLeftovers();
  expect(await engine.listContainers(labels)).toEqual([]);
});

it('proves no cards if they are simulated, and nothing without the image', async () => {
  const execEngine = async () => createExecEngine(connection);
  const options = { executorId, random: systemRandom, engine, execEngine };
  const simulated = createProofProgram({
    ...options,
    gpu: { kind: 'simulated' },
    image: 'podwright.local/none:1',
  });
  expect([simulated.hasCards, await simulated.image()]).toEqual([false, null]);
});

it('hashes rows that are longer than a piece like the verifier', async () => {
  const product = { n: 1_040, rounds: 1, seed: PRODUCT.seed };
  const input = `product ${product.n} 1 ${Buffer.from(product.seed).toString('hex')}\n`;
  const { stdout } = await runCommand(program, [UUID], { ...BOUNDS, input });
  const started = await hostProgram().start(UUID, null, runOf(null));
  if ('fault' in started) throw new Error('no program');
  const expected = await started.done.product(product, NEVER);
  expect({ done: { ...JSON.parse(stdout), ms: 0 } }).toEqual(expected);
});

const SEED = 'ab'.repeat(32);
const GOOD_FILL = `fill 1 64 ${SEED}\n`;
it.each([
  ['another word', `prove 1\n`],
  ['a size that is not a multiple of the step', `product 100 1 ${SEED}\n`],
  ['a size above the maximum', `product 32768 1 ${SEED}\n`],
  ['no rounds', `product 64 0 ${SEED}\n`],
  ['a negative number', `product -64 1 ${SEED}\n`],
  ['a malformed seed', `product 64 1 ${SEED.slice(1)}g\n`],
  ['an additional word', `product 64 1 ${SEED} more\n`],
  ['rows without a product', `rows 0 ${SEED} 1\n`],
  ['a row beyond the last', `product 64 1 ${SEED}\nrows 0 ${SEED} 64\n`],
  ['more rows than are opened', `product 64 1 ${SEED}\nrows 0 ${SEED} ${'1,'.repeat(33)}\n`],
  ['lanes that end inside a leaf', `fill 1 100 ${SEED}\n`],
  ['no lanes', `fill 0 64 ${SEED}\n`],
  ['more memory than any card has', `fill 1024 1048640 ${SEED}\n`],
  ['a second fill', `${GOOD_FILL}${GOOD_FILL}`],
  ['a walk without a fill', `walk ${SEED} 1\n`],
  ['a walk without steps', `${GOOD_FILL}walk ${SEED} 0\n`],
  ['a walk with too many steps', `${GOOD_FILL}walk ${SEED} 16385\n`],
  ['a leaf beyond the last', `${GOOD_FILL}leaves 16\n`],
  ['more leaves than are opened', `${GOOD_FILL}leaves ${'1,'.repeat(257)}\n`],
])('rejects %s', async (_, input) => {
  const { exitCode, stdout } = await runCommand(program, [UUID], { ...BOUNDS, input });
  expect(exitCode).toBe(1);
  const last = stdout.trim().split('\n').at(-1) ?? '';
  expect(CARD_FAULTS).toContain(JSON.parse(last).fault);
});

it.each([[[]], [['disk']], [['disk', '/nowhere/fill']], [['disk', '/tmp']]])(
  'rejects the device %j',
  async (argv) => {
    const { exitCode, stdout } = await runCommand(program, argv, BOUNDS);
    expect([exitCode, JSON.parse(stdout).fault]).toEqual([1, 'GPU_PROOF_FAILED']);
  },
);
