/** The container of a pod: row, spec and leases -> what the engine is asked for (agent reference 7). Pure. */
import type { PodSpec } from '#shared/api/agent/pod.ts';
import { type ContainerSpec, LABELS, type VolumeMount } from '../containers/engine/engine.ts';
import { podLabels } from '../containers/engine/labels.ts';
import type { CpuPlacement } from '../gpu/cpu-placement.ts';
import type { PodRow } from './pod.store.ts';
import { containerName, launchHash, type PortMapping } from './pod-row.ts';
import { AUTHORIZED_KEYS_FILE } from './pod-ssh.ts';

export type GpuMode = 'nvidia' | 'simulated' | 'none';

/** What CUDA programs, nvidia-smi, hardware video and rendering without a screen need. */
const DRIVER_CAPABILITIES = 'compute,utility,video,graphics';
/** Needs /dev/nvidia-modeset, which hosts without a screen may lack. */
const DISPLAY_CAPABILITY = 'display';

/** `imageId`, `network` and `volumes` exist already. */
export function podContainer(options: {
  executorId: string;
  row: PodRow;
  spec: PodSpec;
  imageId: string;
  network: string;
  volumes: readonly VolumeMount[];
  /** Published by the engine. */
  ports: readonly PortMapping[];
  readOnlyMounts: NonNullable<ContainerSpec['readOnlyMounts']>;
  gpuMode: GpuMode;
  /** Whether the host gives containers the driver's display capability. */
  display: boolean;
  /** The processors and memory beside its GPUs; null leaves it all of the host's. */
  place: CpuPlacement | null;
  /** The engine takes a limit of the root file system. */
  limitsDisk: boolean;
}): ContainerSpec {
  const { row, spec, ports, place } = options;
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
    environment: podEnvironment(spec, gpuUuids, options.display),
    network: options.network,
    ports,
    readOnlyMounts: options.readOnlyMounts,
    volumes: options.volumes,
    gpuUuids,
    limits: {
      cpuCores: spec.limits.cpu_cores,
      ...(place === null ? {} : { cpus: place.cpus }),
      ...(place?.memoryNodes ? { memoryNodes: place.memoryNodes } : {}),
      memoryBytes: spec.limits.memory_bytes,
      shmBytes: spec.limits.shm_bytes,
      pids: spec.limits.pids,
      ...(diskBytes === undefined ? {} : { diskBytes }),
    },
    stopGraceSeconds: spec.stop_grace_seconds,
  };
}

/** The lease alone decides which GPUs are seen: `void` hides all of them, whatever the image says. */
function podEnvironment(
  spec: PodSpec,
  gpuUuids: readonly string[],
  display: boolean,
): Record<string, string> {
  const { NVIDIA_VISIBLE_DEVICES: _, NVIDIA_DRIVER_CAPABILITIES: __, ...given } = spec.environment;
  const environment = spec.publish_own_sshd
    ? { ...given, PODWRIGHT_AUTHORIZED_KEYS: AUTHORIZED_KEYS_FILE }
    : given;
  return gpuUuids.length === 0
    ? { ...environment, NVIDIA_VISIBLE_DEVICES: 'void' }
    : {
        ...environment,
        NVIDIA_VISIBLE_DEVICES: gpuUuids.join(','),
        NVIDIA_DRIVER_CAPABILITIES: display
          ? `${DRIVER_CAPABILITIES},${DISPLAY_CAPABILITY}`
          : DRIVER_CAPABILITIES,
      };
}
