/** What can hold a pod to its share of the disk, found by trying: engines say no only when they are asked. */
import type { DiskQuota } from '#shared/api/agent/inventory.ts';
import type { Random } from '#shared/runtime/random.ts';
import { type ContainerEngine, EngineError, LABELS } from '../containers/engine/engine.ts';
import type { PodRow } from './pod.store.ts';
import type { PodRecords } from './pod-records.ts';
import { specOf } from './pod-row.ts';

export type DiskQuotaProbe = ReturnType<typeof createDiskQuotaProbe>;

const MIB = 1024 * 1024;
const PROBE_LIMITS = {
  cpuCores: 0.1,
  memoryBytes: 16 * MIB,
  shmBytes: MIB,
  pids: 16,
  diskBytes: 64 * MIB,
};

export function createDiskQuotaProbe(deps: {
  engine: ContainerEngine;
  executorId: string;
  random: Random;
  /** The id of an image that needs no registry. */
  ensureBuiltinImage(): Promise<string>;
}) {
  const { engine } = deps;
  let found: DiskQuota | null = null;

  /** Created and never started: a file system without quotas refuses at once. */
  async function engineTakesLimit(): Promise<boolean> {
    const labels = {
      [LABELS.managed]: '1',
      [LABELS.executor]: deps.executorId,
      [LABELS.kind]: 'probe',
    };
    const image = await deps.ensureBuiltinImage();
    try {
      const id = await engine.createContainer({
        name: `podwright-quota-${deps.random.uuid()}`,
        image,
        labels,
        entrypoint: ['/bin/true'],
        command: [],
        environment: {},
        network: null,
        ports: [],
        gpuUuids: [],
        limits: PROBE_LIMITS,
        stopGraceSeconds: 0,
      });
      await engine.removeContainer(id);
      return true;
    } catch (error) {
      if (error instanceof EngineError && error.kind === 'refused') return false;
      throw error;
    }
  }

  return {
    /** Finds out, once; rejects with EngineError while the engine gives no answer either way. */
    async find(): Promise<DiskQuota> {
      found ??= (await engineTakesLimit()) ? 'kernel' : 'poll';
      return found;
    },
    /** `none` until it is found out. */
    found: (): DiskQuota => found ?? 'none',
  };
}

// MERGED agent/pods/disk-limit.ts: Stops a pod that has written more than it may; its data stays until it is removed or changed.
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
