/**
 * What restores need of pods: have one stand still while its tree is exchanged, as long as its row of operations says so,
 * and see it run again (agent reference 14).
 */
import { type ContainerState, EngineError } from '../containers/engine/engine.ts';
import type { EngineHealth } from '../containers/engine/engine-health.ts';
import { podLabels } from './pod.container.ts';
import { isAlive } from './pod.containers.ts';
import type { PodRecords } from './pod.records.ts';
import { RESTING_PHASES } from './pod.state.ts';
import type { PodSupervisor } from './pod.supervisor.ts';

/**
 * - `running`: a container of it runs, and nothing is under way; `stopped`: nothing of it runs, nor will by itself
 * - `moving`: something is under way; `failed`: it rests; `gone`: it is removed, or being removed
 * - `unknown`: the engine does not answer
 */
export type PodStanding = 'running' | 'stopped' | 'moving' | 'failed' | 'gone' | 'unknown';

export type PodHold = {
  /** Has the pod looked at: whether it is held follows from the rows of operations (`holdsPod`). */
  wake(podId: string): void;
  standingOf(podId: string): Promise<PodStanding>;
};

export function createPodHold(deps: {
  executorId: string;
  health: Pick<EngineHealth, 'listContainers'>;
  records: Pick<PodRecords, 'get'>;
  supervisor: Pick<PodSupervisor, 'wake' | 'isIdle'>;
  isHeld(podId: string): boolean;
}): PodHold {
  const { executorId, health, records, supervisor, isHeld } = deps;

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
    async standingOf(podId) {
      const containers = await listOrNull(podId);
      if (containers === null) return 'unknown';
      const row = records.get(podId);
      if (row === null || row.desired === 'removed') return 'gone';
      // A step under way may yet start it; the next one sees that it is held.
      if (!supervisor.isIdle(podId)) return 'moving';
      if (containers.some(isAlive)) return row.phase === 'running' ? 'running' : 'moving';
      if (isHeld(podId)) return 'stopped';
      return RESTING_PHASES.includes(row.phase) ? 'failed' : 'moving';
    },
  };
}
