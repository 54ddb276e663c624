/** Self-test: starts a probe container with the resources of a pod. */
import type { z } from 'zod';
import type { VerifyRequest, VerifyResult, VerifyStep } from '#shared/api/agent/inventory.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import {
  type ContainerEngine,
  type ContainerSpec,
  EngineError,
  type EngineInfo,
  LABELS,
} from '../containers/engine/engine.ts';
import type { GpuDriver } from '../gpu/gpu-driver.ts';
import { createSteps } from './verify-steps.ts';

export type VerifyService = ReturnType<typeof createVerifyService>;

export type VerifyServiceOptions = {
  clock: Clock;
  random: Random;
  executorId: string;
  engine: Pick<
    ContainerEngine,
    | 'ping'
    | 'info'
    | 'createContainer'
    | 'startContainer'
    | 'waitContainer'
    | 'removeContainer'
    | 'listContainers'
  >;
  gpu: Pick<GpuDriver, 'kind' | 'read'>;
  /** Returns the id of an image that has /bin/true and needs no network. */
  ensureBuiltinImage(): Promise<string>;
  /** Label of the probe containers. Default: `probe`; a process that runs beside the agent needs another label. */
  probeKind?: string;
  /** Called with the error of each failed step of a probe. */
  onFailure?(error: unknown): void;
};

/** Interval and maximum number of attempts to determine whether GPUs reach containers. */
export const GPU_RUNTIME_INTERVAL_MS = 30_000;
const MAX_RUNTIME_TRIES = 5;

const PROBE_COMMAND = ['/bin/true'];
const PROBE_DEADLINE_MS = 30_000;
const PROBE_LIMITS = {
  cpuCores: 1,
  memoryBytes: 128 * 1024 * 1024,
  shmBytes: 1024 * 1024,
  pids: 64,
};

export function createVerifyService(options: VerifyServiceOptions) {
  const { clock, random, executorId, engine, gpu } = options;
  const { probeKind = 'probe' } = options;
  const probeLabels = { [LABELS.executor]: executorId, [LABELS.kind]: probeKind };
  let busy = false;
  let gpuRuntime: boolean | null = null;
  let tries = 0;
  let trying: Promise<void> = Promise.resolve();

  /** Removes probes of interrupted runs. Only one probe runs at a time, so every existing one is stale. */
  async function removeStaleProbes(): Promise<void> {
    for (const probe of await engine.listContainers(probeLabels)) {
      await engine.removeContainer(probe.id);
    }
  }

  function probeSpec(image: string, request: z.output<typeof VerifyRequest>): ContainerSpec {
    return {
      name: `podwright-probe-${random.uuid()}`,
      image,
      labels: { ...probeLabels, [LABELS.managed]: '1' },
      entrypoint: PROBE_COMMAND,
      command: [],
      environment: {},
      network: null,
      ports: [],
      gpuUuids: gpu.kind === 'nvidia' ? request.gpu_uuids : [],
      limits: { ...PROBE_LIMITS, cpuCores: request.cpu_cores ?? PROBE_LIMITS.cpuCores },
      stopGraceSeconds: 0,
    };
  }

  /**
   * Throws if a simulated GPU is not in the inventory. The agent does not request simulated GPUs from the engine; the
   * engine checks only real GPUs.
   */
  async function requireKnownGpus(uuids: readonly string[]): Promise<void> {
    if (gpu.kind === 'nvidia' || uuids.length === 0) return;
    const known = new Set((await gpu.read()).devices.map((device) => device.uuid));
    const missing = uuids.filter((uuid) => !known.has(uuid));
    if (missing.length > 0) throw new EngineError('device', `no such GPU: ${missing.join(', ')}`);
  }

  async function waitForSuccess(id: string): Promise<void> {
    const deadline = clock.deadline(PROBE_DEADLINE_MS);
    const exitCode = await engine.waitContainer(id, deadline).catch((error: unknown) => {
      if (!deadline.aborted) throw error;
      const message = `the probe did not end in ${PROBE_DEADLINE_MS} ms`;
      throw new EngineError('deadline', message, { cause: error });
    });
    if (exitCode !== 0) throw new Error(`the probe ended with exit status ${exitCode}`);
  }

  async function probe(request: z.output<typeof VerifyRequest>): Promise<VerifyResult> {
    const steps = createSteps(clock, options.onFailure);
    let image = '';
    let id: string | null = null;
    await steps.run('engine_ping', () => engine.ping());
    await steps.run('image', async () => {
      image = await options.ensureBuiltinImage();
    });
    await steps.run('create', async () => {
      await removeStaleProbes();
      await requireKnownGpus(request.gpu_uuids);
      id = await engine.createContainer(probeSpec(image, request));
    });
    await steps.run('start', () => engine.startContainer(id ?? ''));
    await steps.run('wait', () => waitForSuccess(id ?? ''));
    await steps.finish('remove', id === null ? null : () => engine.removeContainer(id ?? ''));
    const result = steps.result();
    const nested = result.ok ? await tryNested(image) : [];
    const all = [...result.steps, ...nested];
    return { ...result, steps: all, simulated: gpu.kind === 'simulated' };
  }

  /**
   * Probes Docker-in-Docker as a separate step, which does not affect the result for ordinary pods. Skipped if the
   * runtime is missing.
   */
  async function tryNested(image: string): Promise<VerifyResult['steps']> {
    if (!isNestedOffered(await engine.info())) return [];
    const steps = createSteps(clock);
    await steps.run(NESTED_STEP, async () => {
      const id = await engine.createContainer(nestedSpec(probeSpec(image, { gpu_uuids: [] })));
      try {
        await engine.startContainer(id);
        await waitForSuccess(id);
      } finally {
        await engine.removeContainer(id);
      }
    });
    return steps.result().steps;
  }

  async function exclusively<T>(work: () => Promise<T>): Promise<T> {
    if (busy) throw new ApiError('conflict', 'Another verification is in progress');
    busy = true;
    try {
      return await work();
    } finally {
      busy = false;
    }
  }

  async function probeAndRecord(request: z.output<typeof VerifyRequest>): Promise<VerifyResult> {
    const result = await probe(request);
    recordGpuRuntime(result, request.gpu_uuids.length);
    return result;
  }

  /**
   * Records whether the GPU runtime works. If the engine rejects a card, the runtime may still work; if the
   * engine has no device driver for GPUs, it does not.
   */
  function recordGpuRuntime(result: VerifyResult, gpuCount: number): void {
    if (gpu.kind !== 'nvidia' || gpuCount === 0) return;
    const messages = result.steps.map((step) => step.message).join('\n');
    if (result.ok) gpuRuntime = true;
    else if (/could not select device driver/i.test(messages)) gpuRuntime = false;
  }

  return {
    /** Throws `conflict` during another run; failures of the host are part of the result. */
    async verify(request: z.output<typeof VerifyRequest>): Promise<VerifyResult> {
      // Waits for a GPU runtime attempt instead of rejecting the validator.
      await trying;
      return exclusively(() => probeAndRecord(request));
    },

    removeStaleProbes,

    /** Starts a probe with one GPU, unless it is already known whether GPUs reach containers. */
    async tryGpuRuntime(): Promise<void> {
      if (gpu.kind !== 'nvidia' || gpuRuntime !== null || tries >= MAX_RUNTIME_TRIES) return;
      const [device] = (await gpu.read()).devices;
      if (device === undefined || busy) return;
      const result = exclusively(() => probeAndRecord({ gpu_uuids: [device.uuid] }));
      const ended = () => undefined;
      trying = result.then(ended, ended);
      // An unavailable engine does not count as an attempt.
      if ((await result).reason_code !== 'ENGINE_UNAVAILABLE') tries += 1;
    },

    /** True if GPUs reached a container at the last attempt; null before the first. */
    gpuRuntimeTried: (): boolean | null => gpuRuntime,
  };
}

/** Runtime of pods that run containers themselves. */
export const NESTED_RUNTIME = 'sysbox-runc';
export const NESTED_STEP: VerifyStep['name'] = 'docker_in_docker';

/**
 * Script with the operations that a container engine inside a pod needs: overlay mounts and namespaces.
 * Common runtimes such as runc do not permit them.
 */
const NESTED_ENGINE_SCRIPT = [
  'set -e',
  'mkdir -p /tmp/nested',
  'busybox mount -t tmpfs tmpfs /tmp/nested',
  'cd /tmp/nested',
  'mkdir lower upper work merged',
  'echo seen >lower/file',
  'busybox mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work merged',
  '[ "$(cat merged/file)" = seen ]',
  'busybox unshare -m -p -f true',
].join('\n');

/** Returns true if the engine has the runtime. */
export const isNestedOffered = ({ runtimes }: Pick<EngineInfo, 'runtimes'>): boolean =>
  runtimes.includes(NESTED_RUNTIME);

export function nestedSpec(probe: ContainerSpec): ContainerSpec {
  const command = ['/bin/sh', '-c', NESTED_ENGINE_SCRIPT];
  return { ...probe, entrypoint: command, gpuUuids: [], runtime: NESTED_RUNTIME };
}
