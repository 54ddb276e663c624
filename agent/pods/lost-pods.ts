/** Removal of pods whose row is missing or corrupt while the engine still has objects of these pods. */
import { PodSpec } from '#shared/api/agent/pod.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { type ContainerEngine, EngineError, LABELS } from '../containers/engine/engine.ts';
import { podObjectLabels } from '../containers/engine/labels.ts';
import type { PodRow } from './pod.store.ts';
import type { PodRecords } from './pod-records.ts';
import { newPodRow, specHash } from './pod-row.ts';

export type LostPods = ReturnType<typeof createLostPods>;

const MIB = 1024 * 1024;
const MESSAGE = 'The store has no record of this pod; its remaining objects are being removed';

export function createLostPods(deps: {
  executorId: string;
  engine: Pick<ContainerEngine, 'listContainers' | 'listNetworks' | 'listVolumes'>;
  records: PodRecords;
  clock: Clock;
}) {
  const { engine, records, clock } = deps;

  /** Highest generation among the pod's remaining objects; null if there are none. */
  async function generationLeft(podId: string): Promise<number | null> {
    const labels = podObjectLabels(deps.executorId, podId);
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
      const message = 'The container engine, which may have objects of this pod, does not answer';
      throw new ApiError('upstream_unavailable', message, { cause });
    }
  }

  return {
    /**
     * Replaces a missing or corrupt row by one that is being removed, so that the removal survives a kill of the agent.
     * Returns null if there is nothing to remove. Throws upstream_unavailable while the engine does not answer.
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

/** Row for a removal. Its spec is a minimal placeholder, because no container is created from it. */
function removalRow(podId: string, generation: number, nowMs: number): PodRow {
  const limits = { cpu_cores: 0.1, memory_bytes: 16 * MIB, shm_bytes: 0, pids: 16 };
  const spec = PodSpec.parse({ generation, image: { reference: 'unknown' }, limits });
  const content = { spec_json: JSON.stringify(spec), spec_hash: specHash(spec) };
  const removing = { desired: 'removed', phase: 'removing', message: MESSAGE } as const;
  return { ...newPodRow(podId, generation, content, nowMs), ...removing };
}
