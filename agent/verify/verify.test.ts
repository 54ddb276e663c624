import { describe, expect, it } from 'vitest';
import { VerifyResult } from '#shared/api/agent/inventory.ts';
import { createHttpServer } from '#shared/http/server.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import {
  type ContainerSpec,
  type ContainerState,
  EngineError,
  type EngineInfo,
  LABELS,
} from '../containers/engine/engine.ts';
import type { GpuDriver } from '../gpu/gpu-driver.ts';
import { createSimulatedDriver } from '../gpu/simulated-gpus.ts';
import { registerVerifyRoutes } from './verify.routes.ts';
import { createVerifyService, type VerifyServiceOptions } from './verify.service.ts';

const EXECUTOR_ID = '3f9f41a6-0001-4000-8000-000000000001';
const GPU = 'GPU-51a2b3c4-0001-4aaa-8bbb-00000000000a';
const nvidia: GpuDriver = {
  kind: 'nvidia',
  read: () => Promise.reject(new Error('not asked: the engine judges')),
  health: async () => null,
  isFree: async () => true,
};

const INFO: EngineInfo = {
  version: '28',
  storageDriver: 'overlay2',
  cgroupVersion: '2',
  runtimes: [],
  rootDir: '/var/lib/docker',
  seccomp: true,
};

/** A fake engine: `faults` replaces calls, `containers` holds the existing containers. */
function setUp(faults: Partial<VerifyServiceOptions['engine']> = {}, gpu: GpuDriver = nvidia) {
  const clock = createManualClock();
  const containers = new Map<string, ContainerSpec>();
  const created: ContainerSpec[] = [];
  const engine: VerifyServiceOptions['engine'] = {
    ping: async () => undefined,
    info: async () => ({ ...INFO, runtimes: ['runc'] }),
    async createContainer(spec) {
      const id = `id-${created.push(spec)}`;
      containers.set(id, spec);
      return id;
    },
    startContainer: async () => undefined,
    waitContainer: async () => 0,
    async removeContainer(id) {
      containers.delete(id);
    },
    async listContainers(labels) {
      const wanted = Object.entries(labels);
      return [...containers]
        .filter(([, spec]) => wanted.every(([name, value]) => spec.labels[name] === value))
        .map(([id, spec]) => stateOf(id, spec));
    },
    ...faults,
  };
  const verify = createVerifyService({
    clock,
    random: systemRandom,
    executorId: EXECUTOR_ID,
    engine,
    gpu,
    ensureBuiltinImage: async () => 'sha256:built-in',
  });
  return { clock, engine, containers, created, verify };
}

describe('Docker-in-Docker', () => {
  const offered = { info: async () => ({ ...INFO, runtimes: ['runc', 'sysbox-runc'] }) };

  it('are probed without GPUs if the engine has the runtime', async () => {
    const { verify, created, containers } = setUp(offered);
    const { ok, steps } = await verify.verify({ gpu_uuids: [GPU] });
    expect([ok, steps.at(-1)]).toMatchObject([true, { name: 'docker_in_docker', status: 'ok' }]);
    expect(created.map(({ runtime, gpuUuids }) => [runtime, gpuUuids])).toEqual([
      [undefined, [GPU]],
      ['sysbox-runc', []],
    ]);
    expect(containers.size).toBe(0);
  });

  it('are reported as not working without failing the result', async () => {
    let waited = 0;
    const waitContainer = async () => (waited++ === 0 ? 0 : 1);
    const { verify, containers } = setUp({ ...offered, waitContainer });
    const { ok, reason_code, steps } = await verify.verify({ gpu_uuids: [] });
    expect([ok, reason_code]).toEqual([true, null]);
    expect(steps.at(-1)).toMatchObject({ name: 'docker_in_docker', status: 'failed' });
    expect(containers.size).toBe(0);
  });
});

const reject = (kind: EngineError['kind'], message: string) => () =>
  Promise.reject(new EngineError(kind, message));

it('starts a labelled probe with exactly the requested resources, and removes it', async () => {
  const { verify, created, containers } = setUp();
  const result = await verify.verify({ gpu_uuids: [GPU], cpu_cores: 3 });
  expect(VerifyResult.parse(result)).toMatchObject({ ok: true, reason_code: null });
  expect(result.steps.map((step) => `${step.name} ${step.status}`)).toEqual([
    'engine_ping ok',
    'image ok',
    'create ok',
    'start ok',
    'wait ok',
    'remove ok',
  ]);
  expect(created).toHaveLength(1);
  expect(created[0]).toMatchObject({
    image: 'sha256:built-in',
    labels: {
      [LABELS.managed]: '1',
      [LABELS.executor]: EXECUTOR_ID,
      [LABELS.kind]: 'probe',
    },
    entrypoint: ['/bin/true'],
    network: null,
    gpuUuids: [GPU],
    limits: { cpuCores: 3 },
  });
  expect(containers.size).toBe(0);
});

const MISMATCH_WORDS =
  'nvidia-container-cli: initialization error: nvml error: driver/library version mismatch: unknown';
const CPU_WORDS = 'range of CPUs is from 0.01 to 2.00, as there are only 2 CPUs available';

it.each([
  ['engine_ping', { ping: reject('unavailable', 'away') }, 'ENGINE_UNAVAILABLE'],
  ['create', { createContainer: reject('refused', CPU_WORDS) }, 'CPU_QUOTA_EXCEEDS_HOST'],
  ['create', { createContainer: reject('refused', 'no such option') }, 'CONTAINER_START_FAILED'],
  ['start', { startContainer: reject('device', 'no driver') }, 'GPU_RUNTIME_DEVICE_FAULT'],
  ['start', { startContainer: reject('device', MISMATCH_WORDS) }, 'GPU_RUNTIME_NVML_MISMATCH'],
  ['start', { startContainer: reject('refused', 'exec failed') }, 'CONTAINER_START_FAILED'],
  ['start', { startContainer: reject('unavailable', 'away') }, 'ENGINE_UNAVAILABLE'],
  ['wait', { waitContainer: async () => 1 }, 'CONTAINER_START_FAILED'],
  ['remove', { removeContainer: reject('unavailable', 'away') }, 'ENGINE_UNAVAILABLE'],
])('reports that the step %s failed', async (name, faults, reason) => {
  const { verify, containers } = setUp(faults);
  const result = await verify.verify({ gpu_uuids: [] });
  expect(result).toMatchObject({ ok: false, reason_code: reason });
  const failed = result.steps.findIndex((step) => step.status === 'failed');
  expect(result.steps[failed]?.name).toBe(name);
  const after = result.steps.slice(failed + 1, -1);
  expect(after.every((step) => step.status === 'skipped')).toBe(true);
  if (name !== 'remove') expect(containers.size).toBe(0);
});

it('reports a failure if the probe does not end', async () => {
  const { verify, clock, containers } = setUp({
    waitContainer: (_id, signal) =>
      new Promise((_resolve, fail) => {
        signal.addEventListener('abort', () => fail(signal.reason));
      }),
  });
  const pending = verify.verify({ gpu_uuids: [] });
  await clock.advance(0);
  await clock.advance(30_000);
  const result = await pending;
  expect(result).toMatchObject({ ok: false, reason_code: 'CONTAINER_START_FAILED' });
  expect(result.steps[4]?.message).toMatch(/did not end in 30000 ms/);
  expect(containers.size).toBe(0);
});

it('runs one verification at a time, over HTTP', async () => {
  const gate = Promise.withResolvers<void>();
  const { verify, clock } = setUp({ ping: () => gate.promise });
  const log = createLog({ name: 'test', level: 'silent' });
  const server = createHttpServer({ log, clock, random: systemRandom, bodyLimitBytes: 1000 });
  registerVerifyRoutes(server, { verify });
  const post = () =>
    server.inject({ method: 'POST', url: '/v1/verify', payload: { gpu_uuids: [] } });
  const first = post().then((response) => response);
  while ((await post()).statusCode !== 409) await clock.advance(1);
  gate.resolve();
  expect((await first).json()).toMatchObject({ ok: true, simulated: false });
  expect((await post()).statusCode).toBe(200);
});

it('removes only the probes that an earlier run left', async () => {
  const { verify, engine, containers } = setUp();
  const spec = (labels: Record<string, string>): ContainerSpec => ({
    name: 'x',
    image: 'x',
    labels,
    entrypoint: [],
    command: [],
    environment: {},
    network: null,
    ports: [],
    gpuUuids: [],
    stopGraceSeconds: 0,
    limits: { cpuCores: 1, memoryBytes: 1, shmBytes: 1, pids: 1 },
  });
  await engine.createContainer(spec({ [LABELS.kind]: 'probe', [LABELS.executor]: EXECUTOR_ID }));
  await engine.createContainer(spec({ [LABELS.kind]: 'probe', [LABELS.executor]: 'another' }));
  await engine.createContainer(spec({ [LABELS.kind]: 'pod', [LABELS.executor]: EXECUTOR_ID }));
  await verify.removeStaleProbes();
  expect([...containers.keys()]).toEqual(['id-2', 'id-3']);
});

it('does not request simulated cards from the engine, but rejects unknown ones', async () => {
  const gpu = createSimulatedDriver(EXECUTOR_ID, ['NVIDIA L4']);
  const { verify, created } = setUp({}, gpu);
  const uuid = (await gpu.read()).devices[0]?.uuid ?? '';
  expect(await verify.verify({ gpu_uuids: [uuid] })).toMatchObject({ ok: true, simulated: true });
  expect(created[0]?.gpuUuids).toEqual([]);
  expect(await verify.verify({ gpu_uuids: [GPU] })).toMatchObject({
    ok: false,
    reason_code: 'GPU_RUNTIME_DEVICE_FAULT',
  });
  expect(verify.gpuRuntimeTried()).toBeNull();
});

it('starts a probe to determine whether GPUs reach containers', async () => {
  const outcome: { startContainer?: () => Promise<void> } = {};
  const { verify } = setUp({
    startContainer: () => outcome.startContainer?.() ?? Promise.resolve(),
  });
  await verify.verify({ gpu_uuids: [] });
  expect(verify.gpuRuntimeTried()).toBeNull();
  await verify.verify({ gpu_uuids: [GPU] });
  expect(verify.gpuRuntimeTried()).toBe(true);
  outcome.startContainer = reject('device', 'unknown device');
  await verify.verify({ gpu_uuids: [GPU] });
  expect(verify.gpuRuntimeTried()).toBe(true);
  outcome.startContainer = reject('device', 'could not select device driver "" with capabilities');
  await verify.verify({ gpu_uuids: [GPU] });
  expect(verify.gpuRuntimeTried()).toBe(false);
});

function stateOf(id: string, { name, labels }: ContainerSpec): ContainerState {
  return {
    id,
    name,
    labels,
    status: 'created',
    exitCode: 0,
    oomKilled: false,
    startError: '',
    startedMs: 0,
    finishedMs: 0,
    imageId: '',
    createdMs: 0,
    pid: 0,
    networks: ['podwright-net'],
    logPath: '',
  };
}
