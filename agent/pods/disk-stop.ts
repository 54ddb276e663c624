/** Stops a pod that has written more than it may; its data stays until it is removed or changed. */
import type { ContainerEngine } from '../containers/engine/engine.ts';
import { specOf } from './pod.record.ts';
import type { PodRecords } from './pod.records.ts';
import type { PodRow } from './pod.store.ts';

export type DiskStop = ReturnType<typeof createDiskStop>;

/** Both reject with EngineError. */
export function createDiskStop(deps: {
  engine: Pick<ContainerEngine, 'stopContainer'>;
  records: PodRecords;
}) {
  async function stop(row: PodRow, containerId: string): Promise<void> {
    await deps.engine.stopContainer(containerId, specOf(row).stop_grace_seconds);
  }

  return {
    /** Does nothing to a pod that does not run, or runs another container by now. */
    async begin(row: PodRow, message: string): Promise<void> {
      const { container_id: containerId } = row;
      if (containerId === null) return;
      // Written first: a pod that rests is not started again when its container ends.
      const resting = deps.records.change(row.id, (now) =>
        now.phase === 'running' && now.container_id === containerId
          ? { phase: 'failed', reason: 'DiskQuotaExceeded', message, next_retry_ms: null }
          : null,
      );
      if (resting !== null) await stop(row, containerId);
    },

    /** The agent may have been killed between the decision and the stop. */
    async again(row: PodRow): Promise<void> {
      const { container_id: containerId, phase, reason } = row;
      if (phase === 'running' || reason !== 'DiskQuotaExceeded' || containerId === null) return;
      await stop(row, containerId);
    },
  };
}
