/** Steps of a change of generation. Each may be interrupted at any point and run again. */
import type { ContainerState } from '../containers/engine/engine.ts';
import type { PodRow } from './pod.store.ts';
import {
  type Cause,
  COMMIT_PATCH,
  fallbackOf,
  rollBackPatch,
  specsInUse,
  stagedOf,
  switchPatch,
} from './pod-generations.ts';
import { specOf } from './pod-row.ts';
import { type Commit, type Outcome, RELIST, type StepPorts } from './step-ports.ts';

const UNKNOWN: Cause = { reason: 'Internal', message: 'The new container failed' };

/**
 * Creates the steps. Each writes the row at most once, so the next plan finds the state either before or after the
 * step.
 */
export function createChangeSteps(deps: StepPorts, commit: Commit) {
  const { engine, records, ports, gpuLeases, ssh, clock } = deps;

  /** True if the GPU is needed by a generation that was accepted in the meantime. */
  function isGpuWanted(podId: string, uuid: string): boolean {
    const row = records.get(podId);
    if (row?.desired !== 'running') return false;
    return specsInUse(row).some((spec) => spec.gpu_uuids.includes(uuid));
  }

  return {
    async releaseLeases(row: PodRow): Promise<Outcome> {
      await gpuLeases.release(row.id, (uuid) => isGpuWanted(row.id, uuid));
      records.transaction(() => {
        const now = records.get(row.id);
        if (now?.desired !== 'running') return;
        const wanted = specsInUse(now).flatMap((spec) => spec.internal_ports);
        ports.release(row.id, wanted);
      });
      return RELIST;
    },

    switchOver(row: PodRow): Outcome {
      const at = { nowMs: clock.now(), loginWorks: ssh.loginOf(row).kind === 'works' };
      records.transaction(() => {
        const now = records.get(row.id);
        const staged = now === null ? null : stagedOf(now);
        if (now === null || staged?.image_id == null || now.desired !== 'running') return;
        ssh.carryKeys(now, staged.generation);
        records.apply(row.id, () => switchPatch(now, staged, at));
      });
      return RELIST;
    },

    async stopFallback(row: PodRow, container: ContainerState): Promise<Outcome> {
      const grace = specOf(fallbackOf(row) ?? row).stop_grace_seconds;
      await engine.stopContainer(container.id, grace);
      return RELIST;
    },

    commitChange(row: PodRow): Outcome {
      commit(row, () => COMMIT_PATCH);
      return RELIST;
    },

    rollBack(row: PodRow, cause: Cause | null): Outcome {
      records.transaction(() => {
        const now = records.get(row.id);
        const fallback = now === null ? null : fallbackOf(now);
        if (now === null || fallback === null || now.desired !== 'running') return;
        const rowCause =
          now.reason === null ? UNKNOWN : { reason: now.reason, message: now.message };
        ssh.carryKeys(now, fallback.generation);
        records.apply(row.id, () => rollBackPatch(now, fallback, cause ?? rowCause));
      });
      return RELIST;
    },
  };
}
