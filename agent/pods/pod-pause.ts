/**
 * What restores need of pods: have one stand still while its tree is exchanged, as long as its row of operations says so,
 * and see it run again (agent reference 14).
 */
import { type ContainerState, EngineError } from '../containers/engine/engine.ts';
import type { EngineHealth } from '../containers/engine/engine-health.ts';
import { podLabels } from '../containers/engine/labels.ts';
import { isAlive } from './plan-facts.ts';
import { RESTING_PHASES } from './pod.state.ts';
import type { PodRecords } from './pod-records.ts';
import type { PodSupervisor } from './pod-worker.ts';

/**
 * - `running`: a container of it runs, and nothing is under way; `stopped`: nothing of it runs, nor will by itself
 * - `moving`: something is under way; `failed`: it rests; `gone`: it is removed, or being removed
 * - `unknown`: the engine does not answer
 */
export type PodRunState = 'running' | 'stopped' | 'moving' | 'failed' | 'gone' | 'unknown';

export type PodPause = {
  /** Has the pod looked at: whether it is held follows from the rows of operations (`holdsPod`). */
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
      // A step under way may yet start it; the next one sees that it is held.
      if (!supervisor.isIdle(podId)) return 'moving';
      if (containers.some(isAlive)) return row.phase === 'running' ? 'running' : 'moving';
      if (isPaused(podId)) return 'stopped';
      return RESTING_PHASES.includes(row.phase) ? 'failed' : 'moving';
    },
  };
}
