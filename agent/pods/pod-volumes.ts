/** The data volumes of a pod: one per mount path, made before its container and gone with the pod (agent reference 11). */
import { createHash } from 'node:crypto';
import { mountPathOf } from '#shared/api/agent/volumes.ts';
import {
  type ContainerEngine,
  EngineError,
  LABELS,
  type VolumeMount,
  type VolumeState,
} from '../containers/engine/engine.ts';
import { podLabels } from './pod.container.ts';
import { NameTaken } from './pod.failure.ts';

export type PodVolumes = ReturnType<typeof createPodVolumes>;

/** Of the hash of a path: paths of one pod, of which there are a few, keep apart by it. */
const HASH_CHARS = 16;

/** The same for a path however often it is left out and named again: that is how its data is found again. */
export function volumeName(podId: string, path: string): string {
  const hash = createHash('sha256').update(mountPathOf(path)).digest('hex');
  return `podwright-${podId}-${hash.slice(0, HASH_CHARS)}`;
}

/** The engine is the only one to know which there are: no table can lose a renter's data. */
export function createPodVolumes(deps: {
  executorId: string;
  engine: Pick<ContainerEngine, 'createVolume' | 'listVolumes' | 'removeVolume'>;
}) {
  const { executorId, engine } = deps;

  function mountOf(podId: string, path: string): VolumeMount {
    const target = mountPathOf(path);
    const labels = { ...podLabels(executorId, podId), [LABELS.mountPath]: target };
    return { name: volumeName(podId, path), target, labels };
  }

  /** All that the pod has ever had, also those that no generation names any more. */
  const list = (podId: string): Promise<VolumeState[]> =>
    engine.listVolumes(podLabels(executorId, podId));

  async function create({ name, labels }: VolumeMount): Promise<void> {
    try {
      await engine.createVolume(name, labels);
    } catch (error) {
      if (!(error instanceof EngineError) || error.kind !== 'conflict') throw error;
      throw new NameTaken(`A volume named ${name} belongs to somebody else`);
    }
  }

  return {
    list,
    /** What is to be mounted; makes the missing ones. Throws NameTaken. */
    async ensure(podId: string, paths: readonly string[]): Promise<VolumeMount[]> {
      const mounts = paths.map((path) => mountOf(podId, path));
      if (mounts.length === 0) return mounts;
      const present = new Set((await list(podId)).map(({ name }) => name));
      for (const mount of mounts) if (!present.has(mount.name)) await create(mount);
      return mounts;
    },
    /** Those of `paths` that there are, with the path in the pod. */
    async mounted(
      podId: string,
      paths: readonly string[],
    ): Promise<{ mountPath: string; hostPath: string }[]> {
      const volumes = new Map((await list(podId)).map((volume) => [volume.name, volume]));
      return paths.flatMap((path) => {
        const hostPath = volumes.get(volumeName(podId, path))?.hostPath;
        return hostPath === undefined ? [] : [{ mountPath: mountPathOf(path), hostPath }];
      });
    },
    /** With all data. No container of the pod is left. */
    async remove(podId: string): Promise<void> {
      for (const { name } of await list(podId)) await engine.removeVolume(name);
    },
  };
}
