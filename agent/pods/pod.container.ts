/** The container of a pod: row, spec and leases -> what the engine is asked for (agent reference 7). Pure. */
import type { PodSpec } from '#shared/agent-api/pod.ts';
import { type ContainerSpec, LABELS } from '../docker/engine.ts';
import type { PodRow } from '../store/pod.store.ts';
import { containerName, launchHash, type PortMapping } from './pod.record.ts';

export type GpuMode = 'nvidia' | 'simulated' | 'none';

/** What CUDA programs, nvidia-smi and hardware video need; no display. */
const DRIVER_CAPABILITIES = 'compute,utility,video';

/** `imageId` and `network` exist already. */
export function podContainer(options: {
  executorId: string;
  row: PodRow;
  spec: PodSpec;
  imageId: string;
  network: string;
  /** Published by the engine. */
  ports: readonly PortMapping[];
  readOnlyMounts: NonNullable<ContainerSpec['readOnlyMounts']>;
  gpuMode: GpuMode;
  /** The engine takes a limit of the root file system. */
  limitsDisk: boolean;
}): ContainerSpec {
  const { row, spec, ports } = options;
  const diskBytes = options.limitsDisk ? spec.limits.disk_bytes : undefined;
  const gpuUuids = options.gpuMode === 'nvidia' ? spec.gpu_uuids : [];
  return {
    name: containerName(row.id, row.generation),
    image: options.imageId,
    labels: {
      ...podLabels(options.executorId, row.id),
      [LABELS.generation]: String(row.generation),
      [LABELS.specHash]: launchHash(row.spec_hash, ports),
    },
    entrypoint: spec.entrypoint,
    command: spec.command,
    environment: podEnvironment(spec.environment, gpuUuids),
    network: options.network,
    ports,
    readOnlyMounts: options.readOnlyMounts,
    gpuUuids,
    limits: {
      cpuCores: spec.limits.cpu_cores,
      memoryBytes: spec.limits.memory_bytes,
      shmBytes: spec.limits.shm_bytes,
      pids: spec.limits.pids,
      ...(diskBytes === undefined ? {} : { diskBytes }),
    },
    stopGraceSeconds: spec.stop_grace_seconds,
  };
}

/** What finds all containers of a pod, and nobody else's. */
export function podLabels(executorId: string, podId: string): Record<string, string> {
  return { ...executorLabels(executorId), [LABELS.pod]: podId };
}

/** What finds all pod containers of this agent. */
export function executorLabels(executorId: string): Record<string, string> {
  return { [LABELS.managed]: '1', [LABELS.executor]: executorId, [LABELS.kind]: 'pod' };
}

/** The lease alone decides which GPUs are seen: `void` hides all of them, whatever the image says. */
function podEnvironment(
  given: Readonly<Record<string, string>>,
  gpuUuids: readonly string[],
): Record<string, string> {
  const { NVIDIA_VISIBLE_DEVICES: _, NVIDIA_DRIVER_CAPABILITIES: __, ...environment } = given;
  return gpuUuids.length === 0
    ? { ...environment, NVIDIA_VISIBLE_DEVICES: 'void' }
    : {
        ...environment,
        NVIDIA_VISIBLE_DEVICES: gpuUuids.join(','),
        NVIDIA_DRIVER_CAPABILITIES: DRIVER_CAPABILITIES,
      };
}
