/** Data volumes of a pod: one named volume per mount path, created before the container and removed with the pod. */
import { createHash } from 'node:crypto';
import { access, constants } from 'node:fs/promises';
import { normalizeMountPath } from '#shared/api/agent/volumes.ts';
import {
  type ContainerEngine,
  EngineError,
  LABELS,
  type VolumeMount,
  type VolumeState,
} from '../engine/engine.ts';
import { NameTaken, podLabels } from '../engine/labels.ts';

export type PodVolumes = ReturnType<typeof createPodVolumes>;

/**
 * A mounted volume. `mountPath` is an absolute path in the pod without a trailing slash; `hostPath` is the volume's
 * folder on the host.
 */
export type DataRoot = { mountPath: string; hostPath: string };

/** The agent cannot read the volume: it does not run as root, or the engine is on another host. */
export class PodDataUnreadable extends Error {
  override name = 'PodDataUnreadable';
}

/** Length of the path's hash in a volume name; sufficient to distinguish the few paths of one pod. */
const HASH_CHARS = 16;

/**
 * Returns the name of a path's volume. It is always the same, so a path that one change removes from the spec and a
 * later change adds again still has its data.
 */
export function volumeName(podId: string, path: string): string {
  const hash = createHash('sha256').update(normalizeMountPath(path)).digest('hex');
  return `podwright-${podId}-${hash.slice(0, HASH_CHARS)}`;
}

/** The engine's list is the only record of these volumes, so a lost store loses no data. */
export function createPodVolumes(deps: {
  executorId: string;
  engine: Pick<ContainerEngine, 'createVolume' | 'listVolumes' | 'removeVolume'>;
}) {
  const { executorId, engine } = deps;

  function mountOf(podId: string, path: string): VolumeMount {
    const target = normalizeMountPath(path);
    const labels = { ...podLabels(executorId, podId), [LABELS.mountPath]: target };
    return { name: volumeName(podId, path), target, labels };
  }

  /** Lists the pod's volumes, including those of earlier generations that are not in the present spec. */
  const list = (podId: string): Promise<VolumeState[]> =>
    engine.listVolumes(podLabels(executorId, podId));

  async function create({ name, labels }: VolumeMount): Promise<void> {
    try {
      await engine.createVolume(name, labels);
    } catch (error) {
      if (!(error instanceof EngineError) || error.kind !== 'conflict') throw error;
      throw new NameTaken(`A volume named ${name} exists and belongs to another owner`);
    }
  }

  return {
    list,

    /** Creates missing volumes and returns the mounts for `paths`. Throws NameTaken and EngineError. */
    async ensure(podId: string, paths: readonly string[]): Promise<VolumeMount[]> {
      const mounts = paths.map((path) => mountOf(podId, path));
      if (mounts.length === 0) return mounts;
      const present = new Set((await list(podId)).map(({ name }) => name));
      for (const mount of mounts) if (!present.has(mount.name)) await create(mount);
      return mounts;
    },

    /**
     * Returns the existing volumes among `paths`, for backups and restores. Rejects with PodDataUnreadable if the agent
     * cannot read and write them, and with EngineError.
     */
    async dataRoots(podId: string, paths: readonly string[]): Promise<DataRoot[]> {
      const volumes = new Map((await list(podId)).map((volume) => [volume.name, volume]));
      const roots = paths.flatMap((path) => {
        const hostPath = volumes.get(volumeName(podId, path))?.hostPath;
        return hostPath === undefined ? [] : [{ mountPath: normalizeMountPath(path), hostPath }];
      });
      for (const { hostPath } of roots) await checkReadable(hostPath);
      return roots;
    },

    /** Removes all volumes of the pod with their data. No container of the pod may exist. */
    async remove(podId: string): Promise<void> {
      for (const { name } of await list(podId)) await engine.removeVolume(name);
    },
  };
}

async function checkReadable(hostPath: string): Promise<void> {
  try {
    await access(hostPath, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (cause) {
    const message =
      "The data of pods can be read only by an agent that runs as root, on its engine's host";
    throw new PodDataUnreadable(message, { cause });
  }
}
