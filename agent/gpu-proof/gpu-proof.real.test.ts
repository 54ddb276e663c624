/** Runs the GPU proof, compiled for a host, in real containers and compares it with shared/proof-of-work byte for byte. */
import { createReadStream, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { CARD_FAULTS } from '#shared/api/agent/challenges.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { hostCards } from '../../test/fakes/agents/host-cards.ts';
import { mustRun } from '../../test/fakes/agents/real-host.ts';
import { createDockerodeEngine } from '../containers/engine/dockerode-engine.ts';
import { type ContainerEngine, type ContainerSpec, LABELS } from '../containers/engine/engine.ts';
import { createExecEngine } from '../containers/engine/exec.ts';
import { type CardTask, createGpuProof, type Run } from '../verify/challenges/gpu-proof.ts';

const SOURCES = import.meta.dirname;
const UUID = 'GPU-3f9f41a6-0001-4000-8000-000000000001';
const BOUNDS = { timeoutMs: 120_000, maxOutputBytes: 1_000_000 };
const TASK: CardTask = {
  uuid: UUID,
  n: 112,
  rounds: 3,
  seed: systemRandom.bytes(32),
  memory: {
    seed: systemRandom.bytes(32),
    walk: { blockBytes: 64, blocks: 1_001, steps: 500 },
  },
};

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
  program = join(folder, 'proof');
  const options = ['-O2', '-std=c++17', '-Wall', '-Wextra', '-Werror', '-static'];
  const source = join(SOURCES, 'host.cc');
  const compiled = await runCommand('g++', [...options, source, '-o', program], BOUNDS);
  if (compiled.exitCode !== 0) throw new Error(compiled.stderr);
  const tar = join(folder, 'image.tar');
  await mustRun('tar', '-C', folder, '-cf', tar, 'proof');
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
function proofOn({ gpus }: { gpus: boolean }) {
  const watched: Pick<ContainerEngine, 'createContainer'> = {
    createContainer(spec) {
      specs.push(spec);
      const own = { ...spec.labels, 'io.podwright.test-run': inject('testRun') };
      return engine.createContainer({ ...spec, labels: own, gpuUuids: gpus ? spec.gpuUuids : [] });
    },
  };
  specs = [];
  return createGpuProof({
    executorId,
    clock: systemClock,
    random: systemRandom,
    gpu: { kind: 'nvidia' },
    engine: { ...engine, ...watched },
    image: reference,
    execEngine: async () => createExecEngine(connection),
  });
}

const runOf = (image: string | null, signal = new AbortController().signal): Run => ({
  image: image ?? 'none',
  deadlineMs: 60_000,
  signal,
});

it('commits to the same work as the verifier and opens the same rows, with one container per card', async () => {
  const proof = proofOn({ gpus: false });
  const run = runOf(await proof.image());
  const second = {
    ...TASK,
    uuid: UUID.replace(/1$/, '2'),
    seed: systemRandom.bytes(32),
    memory: null,
  };
  const cards = await proof.commit([TASK, second], run);
  const expected = await hostCards().commit([TASK, second], run);
  const told = cards.map(({ uuid, fault, product, memory }) => ({
    uuid,
    fault,
    roots: product?.roots,
    digest: memory?.digest,
  }));
  expect(told).toEqual(
    expected.map(({ uuid, product, memory }) => ({
      uuid,
      fault: null,
      roots: product?.roots,
      digest: memory?.digest,
    })),
  );
  const { uuid, n, seed } = TASK;
  const rounds = [
    { round: 0, seed, indices: [0, 7, 111] },
    { round: 2, seed: second.seed, indices: [64] },
  ];
  const opened = await proof.open({ uuid, n, rounds }, run);
  expect(opened).toEqual(await hostCards().open({ uuid, n, rounds }, run));

  expect(specs.map(({ gpuUuids }) => gpuUuids)).toEqual([[UUID], [second.uuid], [UUID]]);
  for (const spec of specs) {
    expect(spec).toMatchObject({ network: null, readOnlyRoot: true });
    expect(spec.labels).toMatchObject({ [LABELS.managed]: '1', [LABELS.kind]: 'proof' });
  }
  expect(await engine.listContainers(labels)).toEqual([]);
});

it('reports a fault for a card that the engine rejects, and leaves no container', async () => {
  const proof = proofOn({ gpus: true });
  const [card] = await proof.commit([TASK], runOf(await proof.image()));
  expect(card).toMatchObject({ uuid: UUID, fault: { code: 'DEVICE_ABSENT' }, product: null });
  expect(await engine.listContainers(labels)).toEqual([]);
});

it('aborts at its deadline, and removes containers of a killed agent', async () => {
  const proof = proofOn({ gpus: false });
  const image = await proof.image();
  const late = new AbortController();
  const endless = proof.commit([{ ...TASK, n: 8_192 }], runOf(image, late.signal));
  const ended = expect(endless).rejects.toThrow('too late');
  await expect
    .poll(async () => (await engine.listContainers(labels)).map(({ status }) => status))
    .toEqual(['running']);
  late.abort(new Error('too late'));
  await ended;
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
  await proof.removeLeftovers();
  expect(await engine.listContainers(labels)).toEqual([]);
});

it('runs no proof with simulated cards or without the image', async () => {
  const options = { executorId, clock: systemClock, random: systemRandom, engine };
  const execEngine = async () => createExecEngine(connection);
  const simulated = createGpuProof({
    ...options,
    execEngine,
    gpu: { kind: 'simulated' },
    image: reference,
  });
  const none = createGpuProof({
    ...options,
    execEngine,
    gpu: { kind: 'nvidia' },
    image: 'podwright.local/none:1',
  });
  expect([await simulated.image(), await none.image()]).toEqual([null, null]);
});

const SEED = 'ab'.repeat(32);
it.each([
  ['nothing', ''],
  ['another word', `prove ${UUID}\n`],
  ['a size that is not a multiple of the step', `commit ${UUID} 100 1 ${SEED} 0 0 0 ${SEED}\n`],
  ['a size above the maximum', `commit ${UUID} 32768 1 ${SEED} 0 0 0 ${SEED}\n`],
  ['no rounds', `commit ${UUID} 64 0 ${SEED} 0 0 0 ${SEED}\n`],
  ['a negative number', `commit ${UUID} -64 1 ${SEED} 0 0 0 ${SEED}\n`],
  ['a malformed seed', `commit ${UUID} 64 1 ${SEED.slice(1)}g 0 0 0 ${SEED}\n`],
  ['an additional word', `commit ${UUID} 64 1 ${SEED} 0 0 0 ${SEED} more\n`],
  ['a row beyond the last', `open ${UUID} 64 0 ${SEED} 64\n`],
  ['more rows than are opened', `open ${UUID} 64 0 ${SEED} ${'1,'.repeat(33)}\n`],
  [
    'more memory than any card has',
    `commit ${UUID} 64 1 ${SEED} 1048576 1099511627776 1 ${SEED}\n`,
  ],
])('rejects %s', async (_, input) => {
  const { exitCode, stdout } = await runCommand(program, [], { ...BOUNDS, input });
  expect(exitCode).toBe(1);
  const last = stdout.trim().split('\n').at(-1) ?? '';
  expect(CARD_FAULTS).toContain(JSON.parse(last).fault);
});
