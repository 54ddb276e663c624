/** Pauses a pod while a restore exchanges its data, and reports whether the pod runs again. */
import { type ContainerState, EngineError } from '../containers/engine/engine.ts';
import type { EngineHealth } from '../containers/engine/engine-health.ts';
import { podLabels } from '../containers/engine/labels.ts';
import { isAlive } from './plan-facts.ts';
import { RESTING_PHASES } from './pod.state.ts';
import type { PodRecords } from './pod-records.ts';
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
