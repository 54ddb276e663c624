/** Access of backups and restores to the data of a pod, and its pause while a restore exchanges the data. */

import type { Containers } from '../containers/containers.ts';
import { type ContainerState, EngineError } from '../containers/engine/engine.ts';
import type { EngineHealth } from '../containers/engine/engine-health.ts';
import { podLabels } from '../containers/engine/labels.ts';
import type { ContainerFiles } from '../containers/volumes/container-files.ts';
import type { DataRoot } from '../containers/volumes/pod-volumes.ts';
import { isAlive } from './plan-facts.ts';
import { RESTING_PHASES } from './pod.state.ts';
import type { PodRecords } from './pod-records.ts';
import { specOf } from './pod-row.ts';
import type { PodSupervisor } from './pod-worker.ts';

/**
 * - `running`: its container runs and no step is in progress; `stopped`: no container runs or will be started
 * - `moving`: a step is in progress; `failed`: the pod is in a resting phase; `gone`: it is removed or being removed
 * - `unknown`: the engine does not answer
 */
export type PodRunState = 'running' | 'stopped' | 'moving' | 'failed' | 'gone' | 'unknown';

export type PodPause = {
  /** Wakes the pod's worker, which reads from the rows of operations whether the pod is paused. */
  wake(podId: string): void;
  runStateOf(podId: string): Promise<PodRunState>;
};

export function createPodPause(deps: {
  executorId: string;
  health: Pick<EngineHealth, 'listContainers'>;
  records: Pick<PodRecords, 'get'>;
  supervisor: Pick<PodSupervisor, 'wake' | 'isIdle'>;
  isPaused(podId: string): boolean;
}): PodPause {
  const { executorId, health, records, supervisor, isPaused } = deps;

  async function listOrNull(podId: string): Promise<readonly ContainerState[] | null> {
    try {
      return await health.listContainers(podLabels(executorId, podId));
    } catch (error) {
      if (error instanceof EngineError) return null;
      throw error;
    }
  }

  return {
    wake: supervisor.wake,
    async runStateOf(podId) {
      const containers = await listOrNull(podId);
      if (containers === null) return 'unknown';
      const row = records.get(podId);
      if (row === null || row.desired === 'removed') return 'gone';
      // The step in progress may still start the container; only the next plan considers the pause.
      if (!supervisor.isIdle(podId)) return 'moving';
      if (containers.some(isAlive)) return row.phase === 'running' ? 'running' : 'moving';
      if (isPaused(podId)) return 'stopped';
      return RESTING_PHASES.includes(row.phase) ? 'failed' : 'moving';
    },
  };
}

export function createPodData(
  records: Pick<PodRecords, 'get'>,
  { podVolumes, containerFiles }: Pick<Containers, 'podVolumes' | 'containerFiles'>,
) {
  return {
    /** Data volumes that the pod's present generation mounts; none if the pod does not exist or is being removed. */
    async dataRootsOf(podId: string): Promise<DataRoot[]> {
      const row = records.get(podId);
      if (row === null || row.desired !== 'running') return [];
      return podVolumes.dataRoots(podId, specOf(row).volumes);
    },

    /** File system of the pod's present container; `absent` if the pod has none at present. */
    async containerFilesOf(podId: string): Promise<ContainerFiles | 'absent' | 'unreadable'> {
      const row = records.get(podId);
      if (row === null || row.desired !== 'running' || row.container_id === null) return 'absent';
      return containerFiles.of(row.container_id);
    },
  };
}
