/** Used by all steps of a pod: their ports, their outcome, and writes of the row. */
import type { PullProgress } from '#shared/api/agent/images.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import type {
  ContainerEngine,
  ContainerSpec,
  ContainerState,
  VolumeMount,
} from '../containers/engine/engine.ts';
import type { EndLeftoverTask } from '../containers/engine/leftover-task.ts';
import type { PodImages } from '../containers/images/pod-images.ts';
import type { PodNetworks } from '../containers/network/pod-network.ts';
import type { PodVolumes } from '../containers/volumes/pod-volumes.ts';
import type { PlaceOf } from '../gpu/cpu-placement.ts';
import type { GpuLeases } from '../gpu/gpu-lease.ts';
import type { PortService } from '../leases/port.service.ts';
import type { GpuMode } from './container-spec.ts';
import type { DiskQuotaProbe } from './disk-limit.ts';
import type { PodRow } from './pod.store.ts';
import type { PodPatch, PodRecords } from './pod-records.ts';
import type { PodSecretsService } from './pod-secrets.ts';
import type { PodSsh } from './pod-ssh.ts';

export type StepPorts = {
  executorId: string;
  engine: ContainerEngine;
  records: PodRecords;
  images: PodImages;
  ports: PortService;
  gpuLeases: GpuLeases;
  gpuMode(): GpuMode;
  placeOf: PlaceOf;
  networks: PodNetworks;
  volumes: Pick<PodVolumes, 'ensure' | 'remove'>;
  /** Volumes that outlive the pod. Rejects with VolumeMissing. */
  persistentVolumes: { mountOf(id: string, podId: string): Promise<VolumeMount> };
  ssh: Pick<PodSsh, 'carryKeys' | 'keyMounts' | 'loginOf' | 'waitForPortRelease'>;
  secrets: Pick<PodSecretsService, 'mounts' | 'removeFiles'>;
  diskQuota: DiskQuotaProbe;
  /** Folders of the agent that are mounted into every pod. */
  readOnlyMounts: NonNullable<ContainerSpec['readOnlyMounts']>;
  endLeftoverTask: EndLeftoverTask;
  /** Id of the host's present boot. */
  bootId: string;
  clock: Clock;
  random: Random;
  onPull(podId: string, progress: PullProgress | null): void;
  /** Called when a launch step has succeeded. */
  onLaunchStep(stage: LaunchStage, tookMs: number): void;
};

/** Steps whose duration is reported. */
export const LAUNCH_STAGES = ['pull', 'create', 'start'] as const;
export type LaunchStage = (typeof LAUNCH_STAGES)[number];

/** `settled`: nothing is left to do now. Otherwise the pod's containers, or null to list them again. */
export type Outcome = 'settled' | { observed: readonly ContainerState[] | null };

export const RELIST: Outcome = { observed: null };

/** Writes the row; returns null if nothing was written. */
export type Commit = (planned: PodRow, decide: (row: PodRow) => PodPatch | null) => PodRow | null;

/**
 * Creates a Commit that writes only if generation and desired state are those of the plan. Otherwise the next plan
 * finds the changed row.
 */
export function createCommit(records: PodRecords): Commit {
  return (planned, decide) =>
    records.change(planned.id, (row) =>
      row.generation === planned.generation && row.desired === planned.desired ? decide(row) : null,
    );
}

/** Patch after `container` was found running. */
export function runningPatch(row: PodRow, container: ContainerState, bootId: string): PodPatch {
  return {
    phase: 'running',
    container_id: container.id,
    image_id: row.image_id ?? container.imageId,
    observed_generation: row.generation,
    reason: null,
    message: '',
    next_retry_ms: null,
    port_conflicts: 0,
    boot_id: bootId,
    ...(row.phase === 'rebooting' ? { reboots_done: row.reboot_target } : {}),
  };
}

/**
 * Outcome of a step after the row was written as running; `running` is null if it was not written. A generation on
 * trial is planned again at once.
 */
export function outcomeOf(running: PodRow | null): Outcome {
  return running === null || running.fallback_json !== null ? RELIST : 'settled';
}
