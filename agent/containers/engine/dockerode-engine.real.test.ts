import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { ensureBuiltinImage } from '../images/builtin-image.ts';
import { createDockerodeEngine } from './dockerode-engine.ts';
import { type ContainerEngine, LABELS, type LogChunk } from './engine.ts';

/** Tests of behaviour that the in-memory engine lacks: container output, and a missing socket. */
const engine = createDockerodeEngine({ socketPath: '/var/run/docker.sock', clock: systemClock });
const labels = { [LABELS.managed]: '1', [LABELS.executor]: systemRandom.uuid() };
const NEVER = new AbortController().signal;
let image: string;

beforeAll(async () => {
  image = await ensureBuiltinImage(engine, '/bin/busybox');
});

afterAll(async () => {
  for (const { id } of await engine.listContainers(labels)) await engine.removeContainer(id);
});

async function runScript(script: string): Promise<string> {
  const id = await engine.createContainer({
    name: `logs-${systemRandom.uuid()}`,
    image,
    labels: { ...labels, 'io.podwright.test-run': inject('testRun') },
    entrypoint: [],
    command: ['sh', '-c', script],
    environment: {},
    network: null,
    ports: [],
    gpuUuids: [],
    limits: { cpuCores: 1, memoryBytes: 2 ** 26, shmBytes: 2 ** 20, pids: 64 },
    stopGraceSeconds: 1,
  });
  await engine.startContainer(id);
  return id;
}

const textOf = ({ data }: LogChunk) => new TextDecoder().decode(data).replace(/^\S+ /, '');

async function read(...options: Parameters<ContainerEngine['containerLogs']>): Promise<string[]> {
  const chunks = await Array.fromAsync(engine.containerLogs(...options));
  return chunks.map((chunk) => `${chunk.stream} ${textOf(chunk).trim()}`);
}

it('reports the engine’s disk use including images', async () => {
  const info = await engine.inspectImage(image);
  expect(await engine.engineDiskBytes()).toBeGreaterThanOrEqual(info?.sizeBytes ?? Infinity);
});

it('returns a container’s output by stream, its last lines, or its lines since a time', async () => {
  const id = await runScript('echo one; sleep 0.1; echo two >&2; sleep 0.1; echo three');
  expect(await engine.waitContainer(id, NEVER)).toBe(0);
  const all = ['stdout one', 'stderr two', 'stdout three'];
  expect(await read(id, { tail: 'all', follow: false }, NEVER)).toEqual(all);
  expect(await read(id, { tail: 1, follow: false }, NEVER)).toEqual(['stdout three']);
  const sinceMs = systemClock.now() + 60_000;
  expect(await read(id, { tail: 'all', follow: false, sinceMs }, NEVER)).toEqual([]);
});

it('follows the output until the container ends or the reader stops', async () => {
  const ending = await runScript('echo one; sleep 0.3; echo two');
  const followed = read(ending, { tail: 'all', follow: true }, NEVER);
  expect(await followed).toEqual(['stdout one', 'stdout two']);

  const endless = await runScript('while :; do echo line; sleep 0.1; done');
  const leaving = new AbortController();
  const seen: string[] = [];
  for await (const chunk of engine.containerLogs(
    endless,
    { tail: 'all', follow: true },
    leaving.signal,
  )) {
    seen.push(textOf(chunk));
    if (seen.length === 2) leaving.abort();
  }
  expect(seen).toEqual(['line\n', 'line\n']);
});

it('rejects more processors than the host has', async () => {
  const cores = 4_096;
  const limits = { cpuCores: cores, memoryBytes: 2 ** 26, shmBytes: 2 ** 20, pids: 64 };
  const request = engine.createContainer({
    name: `refused-${systemRandom.uuid()}`,
    image,
    labels,
    entrypoint: [],
    command: [],
    environment: {},
    network: null,
    ports: [],
    gpuUuids: [],
    limits,
    stopGraceSeconds: 1,
  });
  await expect(request).rejects.toMatchObject({
    kind: 'refused',
    message: expect.stringMatching(/CPUs/),
  });
});

it('distinguishes refused GPUs from other refusals', async () => {
  const limits = { cpuCores: 1, memoryBytes: 2 ** 26, shmBytes: 2 ** 20, pids: 64 };
  const gpuUuids = ['GPU-00000000-0000-4000-8000-000000000000'];
  const id = await engine.createContainer({
    name: `gpu-${systemRandom.uuid()}`,
    image,
    labels,
    entrypoint: [],
    command: [],
    environment: {},
    network: null,
    ports: [],
    gpuUuids,
    limits,
    stopGraceSeconds: 1,
  });
  await expect(engine.startContainer(id)).rejects.toMatchObject({ kind: 'device' });
});

it('reports that the engine is unavailable if the socket does not exist', async () => {
  const none = createDockerodeEngine({ socketPath: '/nowhere/docker.sock', clock: systemClock });
  await expect(none.ping()).rejects.toMatchObject({ kind: 'unavailable' });
  await expect(none.listContainers(labels)).rejects.toMatchObject({ kind: 'unavailable' });
  await expect(none.removeContainer('x')).rejects.toMatchObject({ kind: 'unavailable' });
});
