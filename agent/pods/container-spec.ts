/** Builds the engine's container spec from a pod's row, spec and leases. Pure. */
import type { PodSpec } from '#shared/api/agent/pod.ts';
import { type ContainerSpec, LABELS, type VolumeMount } from '../containers/engine/engine.ts';
import { podLabels } from '../containers/engine/labels.ts';
import type { CpuPlacement } from '../gpu/cpu-placement.ts';
import type { PodRow } from './pod.store.ts';
import { containerName, launchHash, type PortMapping } from './pod-row.ts';
import { AUTHORIZED_KEYS_FILE } from './pod-ssh.ts';

export type GpuMode = 'nvidia' | 'simulated' | 'none';

/** Driver capabilities for CUDA programs, nvidia-smi, hardware video and headless rendering. */
const DRIVER_CAPABILITIES = 'compute,utility,video,graphics';
/** Driver capability that needs /dev/nvidia-modeset, which headless hosts may not have. */
const DISPLAY_CAPABILITY = 'display';

/** Returns the spec of a pod's container. The image, the network and the volumes must exist. */
export function podContainer(options: {
  executorId: string;
  row: PodRow;
  spec: PodSpec;
  imageId: string;
  network: string;
  volumes: readonly VolumeMount[];
  /** Ports that the engine publishes. */
  ports: readonly PortMapping[];
  readOnlyMounts: NonNullable<ContainerSpec['readOnlyMounts']>;
  gpuMode: GpuMode;
  /** True: request the driver's display capability. */
  display: boolean;
  /** Processors and memory nodes near the pod's GPUs; null: all of the host's. */
  place: CpuPlacement | null;
  /** True: the engine supports a size limit of the root file system. */
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

/**
 * Environment of the container. Only the lease decides which GPUs are visible; `void` hides all of them, whatever the
 * image sets.
 */
function podEnvironment(
  spec: PodSpec,
  gpuUuids: readonly string[],
  display: boolean,
): Record<string, string> {
  const { NVIDIA_VISIBLE_DEVICES: _, NVIDIA_DRIVER_CAPABILITIES: __, ...own } = spec.environment;
  const environment = spec.publish_own_sshd
    ? { ...own, PODWRIGHT_AUTHORIZED_KEYS: AUTHORIZED_KEYS_FILE }
    : own;
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
