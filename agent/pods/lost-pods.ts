/** Pods that the store has lost, or cannot read any more, while the engine still has something of them. */
import { PodSpec } from '#shared/api/agent/pod.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { type ContainerEngine, EngineError, LABELS } from '../containers/engine/engine.ts';
import type { PodRow } from './pod.store.ts';
import type { PodRecords } from './pod-records.ts';
import { newPodRow, specHash } from './pod-row.ts';

export type LostPods = ReturnType<typeof createLostPods>;

const MIB = 1024 * 1024;
const MESSAGE = 'The store knew nothing of this pod; what was left of it is being removed';

export function createLostPods(deps: {
  executorId: string;
  engine: Pick<ContainerEngine, 'listContainers' | 'listNetworks' | 'listVolumes'>;
  records: PodRecords;
  clock: Clock;
}) {
  const { engine, records, clock } = deps;

  /** The highest generation that is left of it; null when nothing is. */
  async function generationLeft(podId: string): Promise<number | null> {
    // Networks carry no kind.
    const labels = {
      [LABELS.managed]: '1',
      [LABELS.executor]: deps.executorId,
      [LABELS.pod]: podId,
    };
    try {
      const [containers, networks, volumes] = await Promise.all([
        engine.listContainers(labels),
        engine.listNetworks(labels),
        engine.listVolumes(labels),
      ]);
      if (containers.length + networks.length + volumes.length === 0) return null;
      return Math.max(
        1,
        ...containers.map((found) => Number(found.labels[LABELS.generation]) || 1),
      );
    } catch (cause) {
      if (!(cause instanceof EngineError)) throw cause;
      const message = 'The container engine, which may have something of this pod, does not answer';
      throw new ApiError('upstream_unavailable', message, { cause });
    }
  }

  return {
    /**
     * Writes the row of a pod that is being removed in place of one that is missing or corrupt, so that
     * the removal goes on after a kill like any other. Null when there is nothing to remove. Throws
     * upstream_unavailable while the engine is away.
     */
    async beginRemoval(podId: string): Promise<PodRow | null> {
      const left = await generationLeft(podId);
      const corrupt = records.isCorrupt(podId);
      if (left === null && !corrupt) return null;
      return records.transaction(() => {
        const present = records.get(podId);
        if (present !== null) return present;
        return records.insert(removalRow(podId, left ?? 1, clock.now()));
      });
    },
  };
}

/** Its spec says as little as a spec can: nothing is ever made from it. */
function removalRow(podId: string, generation: number, nowMs: number): PodRow {
  const limits = { cpu_cores: 0.1, memory_bytes: 16 * MIB, shm_bytes: 0, pids: 16 };
  const spec = PodSpec.parse({ generation, image: { reference: 'unknown' }, limits });
  const content = { spec_json: JSON.stringify(spec), spec_hash: specHash(spec) };
  const removing = { desired: 'removed', phase: 'removing', message: MESSAGE } as const;
  return { ...newPodRow(podId, generation, content, nowMs), ...removing };
}
