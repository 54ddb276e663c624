/**
 * Checks that start the containers that a pod and the validator's probe would need, and remove them
 * afterwards.
 */
import type { DiskQuota, VerifyResult } from '#shared/api/agent/inventory.ts';
import { fail, ok, type Problem, unlessTimedOut, unread, warn } from '#shared/check/check.ts';
import type { DoctorCheck } from '#shared/check/doctor.ts';
import { type Observed, observe } from '#shared/check/observe.ts';
import { type Clock, isTimeout } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import { type ContainerEngine, LABELS } from '../containers/engine/engine.ts';
import type { GpuDriver } from '../gpu/gpu-driver.ts';
import { createFileUsage, createKernelFiles } from '../metrics/usage/kernel-usage.ts';

export type ContainerFacts = {
  /**
   * Result of the validator's probe with all GPUs that nvidia-smi lists. `timedOut` is true if a step of the
   * probe failed because of its time limit.
   */
  verified: Observed<VerifyResult & Pick<Problem, 'timedOut'>>;
  gpuCount: number;
  quota: Observed<DiskQuota>;
  /** Version of cgroups whose files report a container's usage. */
  usage: Observed<1 | 2>;
};

const VERIFY_MS = 90_000;
const QUOTA_MS = 45_000;
const USAGE_MS = 30_000;
/**
 * Label of the doctor's probe containers. Differs from the agent's label, because each program removes
 * leftover containers with its own label.
 */
const PROBE_KIND = 'doctor';
/**
 * Runtime of the sleeping container: long enough to read the usage files; short, because the container outlives a
 * killed doctor.
 */
const SLEEP_SECONDS = '60';
const LIMITS = { cpuCores: 0.1, memoryBytes: 2 ** 26, shmBytes: 2 ** 20, pids: 16 };

/** Starts the containers and removes them. Containers of a doctor that was killed are removed by the next run. */
export async function tryContainers(options: {
  clock: Clock;
  random: Random;
  executorId: string;
  socketPath: string;
  busybox: string;
  gpuUuids: readonly string[];
}): Promise<ContainerFacts> {
  const { clock, random, executorId, busybox, gpuUuids } = options;
  const [{ createDockerodeEngine }, { ensureBuiltinImage }, verifying, quotas] = await Promise.all([
    import('../containers/engine/dockerode-engine.ts'),
    import('../containers/images/builtin-image.ts'),
    import('../verify/verify.service.ts'),
    import('../pods/disk-limit.ts'),
  ]);
  const engine = createDockerodeEngine({ socketPath: options.socketPath, clock });
  const common = {
    engine,
    executorId,
    random,
    ensureBuiltinImage: () => ensureBuiltinImage(engine, busybox),
  };
  let timedOut = false;
  const verify = verifying.createVerifyService({
    ...common,
    clock,
    gpu: gpuUuids.length > 0 ? ENGINE_DECIDES : NO_GPUS,
    probeKind: PROBE_KIND,
    onFailure(error) {
      timedOut ||= isTimeout(error);
    },
  });
  const request = { gpu_uuids: [...gpuUuids] };
  const verified = await observe(clock, VERIFY_MS, async () => {
    const result = await verify.verify(request);
    return timedOut ? { ...result, timedOut: true as const } : result;
  });
  const quota = await observe(clock, QUOTA_MS, () => quotas.createDiskQuotaProbe(common).find());
  const usage = await observe(clock, USAGE_MS, () => tryUsageFiles(common));
  return { verified, gpuCount: gpuUuids.length, quota, usage };
}

const noReading = () =>
  Promise.resolve({
    driverVersion: null,
    cudaVersion: null,
    devices: [],
    topology: null,
    cards: [],
    parts: [],
    processes: null,
    error: null,
    ageMs: 0,
    exitCode: null,
  });
type Cards = Pick<GpuDriver, 'kind' | 'read'>;
const NO_GPUS: Cards = { kind: 'none', read: noReading };
/** Passes the UUIDs to the engine unchecked: the engine rejects cards that it does not have. */
const ENGINE_DECIDES: Cards = { kind: 'nvidia', read: noReading };

/** Returns the facts if no container was started. */
export function notTried(problem: string): ContainerFacts {
  return { verified: { problem }, gpuCount: 0, quota: { problem }, usage: { problem } };
}

/**
 * Reads the usage of a sleeping container from the kernel's files. Returns the version of cgroups; rejects with the
 * reason if the files cannot be read.
 */
async function tryUsageFiles(options: {
  engine: Pick<
    ContainerEngine,
    'createContainer' | 'startContainer' | 'inspectContainer' | 'removeContainer'
  >;
  random: Random;
  executorId: string;
  ensureBuiltinImage(): Promise<string>;
}): Promise<1 | 2> {
  const { engine, random } = options;
  const id = await engine.createContainer({
    name: `podwright-doctor-${random.uuid()}`,
    image: await options.ensureBuiltinImage(),
    labels: {
      [LABELS.executor]: options.executorId,
      [LABELS.kind]: PROBE_KIND,
      [LABELS.managed]: '1',
    },
    entrypoint: ['sleep'],
    command: [SLEEP_SECONDS],
    environment: {},
    network: null,
    ports: [],
    gpuUuids: [],
    limits: LIMITS,
    stopGraceSeconds: 0,
  });
  try {
    await engine.startContainer(id);
    const files = createFileUsage(createKernelFiles());
    const place = files.locate(id, (await engine.inspectContainer(id))?.pid ?? 0);
    files.read(place);
    return place.memoryVersion;
  } finally {
    await engine.removeContainer(id);
  }
}

/** Remedies by the probe's reason codes, which the validator's check `container_start` uses too. */
const REMEDIES: Record<string, string> = {
  ENGINE_UNAVAILABLE: 'journalctl -u docker -n 50; systemctl restart docker',
  GPU_RUNTIME_DEVICE_FAULT:
    'apt install nvidia-container-toolkit; nvidia-ctk runtime configure --runtime=docker; then try: docker run --rm --gpus all ubuntu nvidia-smi -L',
  GPU_RUNTIME_NVML_MISMATCH: 'reboot: the driver was upgraded while its old module stayed loaded',
  CPU_QUOTA_EXCEEDS_HOST:
    'give the Docker engine at least one CPU: run nproc on its host, and raise the CPU limit of the virtual machine or container in which it runs',
  CONTAINER_START_FAILED: 'try by hand: docker run --rm busybox true; journalctl -u docker -n 50',
};

export const CONTAINER_CHECKS: readonly DoctorCheck<ContainerFacts>[] = [
  {
    id: 'container',
    detects: 'a host on which the validator’s probe container fails',
    required: 'a container with all GPUs starts, runs and ends',
    judge({ verified, gpuCount }) {
      if ('problem' in verified) {
        return unread(verified, `the container was not tested: ${verified.problem}`);
      }
      const { ok: isFine, steps, reason_code: reason } = verified.value;
      if (isFine) {
        const tookMs = steps.reduce((sum, { ms }) => sum + ms, 0);
        const withGpus = gpuCount === 0 ? '' : ` with ${gpuCount} GPUs`;
        return ok(`a container${withGpus} ran in ${tookMs} ms, as the validator’s probe would`);
      }
      const failed = steps.find(({ status }) => status === 'failed');
      const measured = `${reason} at step ${failed?.name}: ${failed?.message}`;
      const remedy = REMEDIES[reason ?? ''] ?? 'journalctl -u docker -n 50';
      return unlessTimedOut({ ...verified.value, problem: measured }, fail(measured, remedy));
    },
  },
  {
    id: 'pod-figures',
    detects: 'pods whose usage the agent can only query from the engine, with one request per pod',
    required: 'the usage of a container is readable from the kernel’s files',
    judge({ verified, usage }) {
      if ('value' in usage) {
        return ok(`pods’ usage is read from control groups of version ${usage.value}`);
      }
      // If no container starts at all, its usage files are not the problem.
      if ('problem' in verified || !verified.value.ok) {
        return unread(usage, `not tried: ${usage.problem}`);
      }
      const queried = warn(
        `the agent queries pods’ usage from the engine, with one request per pod: ${usage.problem}`,
        'run the agent on the host itself, or its container with --pid=host --cgroupns=host -v /sys/fs/cgroup:/sys/fs/cgroup:ro',
      );
      return unlessTimedOut(usage, queried);
    },
  },
];
