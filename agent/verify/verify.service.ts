/** The self-test: does this host start a container with what a pod would ask for? */
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
  /** The id of an image that has /bin/true and needs no network. */
  ensureBuiltinImage(): Promise<string>;
  /** How its containers are labelled, `probe` by default; who runs beside the agent needs a label of its own. */
  probeKind?: string;
};

/** How often a host whose GPU runtime is not known is tried, and up to how many times. */
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

  /** Probes of a run that was cut off. Only one runs at a time, so every other one is stale. */
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

  /** Cards that the engine is not asked for must at least be in the inventory. */
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
      throw new EngineError('deadline', `the probe did not end in ${PROBE_DEADLINE_MS} ms`);
    });
    if (exitCode !== 0) throw new Error(`the probe ended with exit status ${exitCode}`);
  }

  async function probe(request: z.output<typeof VerifyRequest>): Promise<VerifyResult> {
    const steps = createSteps(clock);
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

  /** A step of its own, whose failure is none of the host's ordinary pods; none where it is not offered. */
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
    if (busy) throw new ApiError('conflict', 'Another verification is under way');
    busy = true;
    try {
      return await work();
    } finally {
      busy = false;
    }
  }

  async function probeAndLearn(request: z.output<typeof VerifyRequest>): Promise<VerifyResult> {
    const result = await probe(request);
    learnFrom(result, request.gpu_uuids.length);
    return result;
  }

  /** A card that is refused says nothing of the runtime; that no driver can be selected does. */
  function learnFrom(result: VerifyResult, gpuCount: number): void {
    if (gpu.kind !== 'nvidia' || gpuCount === 0) return;
    const words = result.steps.map((step) => step.message).join('\n');
    if (result.ok) gpuRuntime = true;
    else if (/could not select device driver/i.test(words)) gpuRuntime = false;
  }

  return {
    /** Throws `conflict` while another run is under way; every failure of the host is in the result. */
    async verify(request: z.output<typeof VerifyRequest>): Promise<VerifyResult> {
      // A try of our own is no reason to send a validator away.
      await trying;
      return exclusively(() => probeAndLearn(request));
    },

    removeStaleProbes,

    /** Starts a probe with one of the GPUs, unless it is known whether GPUs reach containers here. */
    async tryGpuRuntime(): Promise<void> {
      if (gpu.kind !== 'nvidia' || gpuRuntime !== null || tries >= MAX_RUNTIME_TRIES) return;
      const [device] = (await gpu.read()).devices;
      if (device === undefined || busy) return;
      const result = exclusively(() => probeAndLearn({ gpu_uuids: [device.uuid] }));
      const ended = () => undefined;
      trying = result.then(ended, ended);
      // An engine that is away was not tried.
      if ((await result).reason_code !== 'ENGINE_UNAVAILABLE') tries += 1;
    },

    /** Whether GPUs reached a container when that was last tried; null when it never was. */
    gpuRuntimeTried: (): boolean | null => gpuRuntime,
  };
}

// MERGED agent/verify/verify.service.ts: Whether containers can be run in containers here, found out by doing what an engine inside would do first.
/** The runtime that pods with an engine of their own get. */
export const NESTED_RUNTIME = 'sysbox-runc';
export const NESTED_STEP: VerifyStep['name'] = 'docker_in_docker';

/** Layers on layers, processes and devices of its own: what every inner container needs, and no common runtime gives. */
const AS_AN_ENGINE = [
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

/** Whether the engine says that it has the runtime. */
export const isNestedOffered = ({ runtimes }: Pick<EngineInfo, 'runtimes'>): boolean =>
  runtimes.includes(NESTED_RUNTIME);

/** The probe that tries it. */
export function nestedSpec(probe: ContainerSpec): ContainerSpec {
  const command = ['/bin/sh', '-c', AS_AN_ENGINE];
  return { ...probe, entrypoint: command, gpuUuids: [], runtime: NESTED_RUNTIME };
}
