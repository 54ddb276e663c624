/** Disk limits of pods: a probe for kernel quotas, and the stop of a pod that exceeds its limit. */
import type { DiskQuota } from '#shared/api/agent/inventory.ts';
import type { Random } from '#shared/runtime/random.ts';
import { isDiskFull } from '#shared/runtime/sqlite.ts';
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
  /** Returns the id of the image that needs no registry. */
  ensureBuiltinImage(): Promise<string>;
}) {
  const { engine } = deps;
  let found: DiskQuota | null = null;

  /**
   * Tests for kernel quotas by creating a container with a disk limit, which is never started. A file system without
   * quotas refuses at once.
   */
  async function supportsDiskLimit(): Promise<boolean> {
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
    /** Probes once. Rejects with EngineError if the engine neither accepts nor refuses the limit. */
    async find(): Promise<DiskQuota> {
      found ??= (await supportsDiskLimit()) ? 'kernel' : 'poll';
      return found;
    },
    /** Result of the probe; `none` before the first one. */
    found: (): DiskQuota => found ?? 'none',
  };
}

/** Free and total bytes and files of a disk; the files are 0 on file systems without a fixed number. */
export type DiskSpace = {
  freeBytes: number;
  totalBytes: number;
  freeFiles: number;
  totalFiles: number;
};

export type DiskStop = ReturnType<typeof createDiskStop>;

/**
 * Stops pods that exceed a disk limit. The data remains until the pod is removed or changed. Both methods reject with
 * EngineError.
 */
export function createDiskStop(deps: {
  engine: Pick<ContainerEngine, 'stopContainer'>;
  records: Pick<PodRecords, 'change'>;
}) {
  async function stop(row: PodRow, containerId: string): Promise<void> {
    await deps.engine.stopContainer(containerId, specOf(row).stop_grace_seconds);
  }

  return {
    /** Does nothing if the pod does not run, or runs another container. */
    async begin(row: PodRow, message: string): Promise<void> {
      const { container_id: containerId } = row;
      if (containerId === null) return;
      // Written first: a failed pod is not restarted when its container ends.
      if (mustStop()) await stop(row, containerId);

      function mustStop(): boolean {
        try {
          const resting = deps.records.change(row.id, (now) =>
            now.phase === 'running' && now.container_id === containerId
              ? { phase: 'failed', reason: 'DiskQuotaExceeded', message, next_retry_ms: null }
              : null,
          );
          return resting !== null;
        } catch (error) {
          // The pod may have filled the disk of the store. The next measurement writes the row.
          if (isDiskFull(error)) return true;
          throw error;
        }
      }
    },

    /** Repeats the stop if a kill of the agent interrupted it. */
    async again(row: PodRow): Promise<void> {
      const { container_id: containerId, phase, reason } = row;
      if (phase === 'running' || reason !== 'DiskQuotaExceeded' || containerId === null) return;
      await stop(row, containerId);
    },
  };
}
