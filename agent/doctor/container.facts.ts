/** The self-test that the validator runs, from this process: a container with what a pod would ask for. */
import type { DiskQuota, VerifyResult } from '#shared/api/agent/inventory.ts';
import { type Told, tell } from '#shared/check/told.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { GpuDriver } from '../gpu/gpu-driver.ts';
import { tryUsageFiles } from './usage.facts.ts';

export type ContainerFacts = {
  /** With all GPUs that nvidia-smi shows. */
  verified: Told<VerifyResult>;
  gpuCount: number;
  quota: Told<DiskQuota>;
  /** Version of the control groups whose files tell what a container uses. */
  usage: Told<1 | 2>;
};

const VERIFY_MS = 90_000;
const QUOTA_MS = 45_000;
const USAGE_MS = 30_000;
/** Not the agent's own kind: the two would remove each other's containers. */
const PROBE_KIND = 'doctor';

/** Leaves nothing behind; what a doctor that was killed left, the next one removes. */
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
  const verify = verifying.createVerifyService({
    ...common,
    clock,
    gpu: gpuUuids.length > 0 ? ENGINE_DECIDES : NO_GPUS,
    probeKind: PROBE_KIND,
  });
  const request = { gpu_uuids: [...gpuUuids] };
  const verified = await tell(clock, VERIFY_MS, () => verify.verify(request));
  const quota = await tell(clock, QUOTA_MS, () => quotas.createDiskQuotaProbe(common).find());
  const usage = await tell(clock, USAGE_MS, () => tryUsageFiles({ ...common, kind: PROBE_KIND }));
  return { verified, gpuCount: gpuUuids.length, quota, usage };
}

const noReading = () =>
  Promise.resolve({
    ...{ driverVersion: null, cudaVersion: null, devices: [], topology: null },
    ...{ cards: [], parts: [], processes: null, error: null, ageMs: 0, exitCode: null },
  });
type Cards = Pick<GpuDriver, 'kind' | 'read'>;
const NO_GPUS: Cards = { kind: 'none', read: noReading };
/** The engine is asked for the cards by name, and says itself whether there are such. */
const ENGINE_DECIDES: Cards = { kind: 'nvidia', read: noReading };

/** When no container was started at all. */
export function notTried(problem: string): ContainerFacts {
  return { verified: { problem }, gpuCount: 0, quota: { problem }, usage: { problem } };
}
