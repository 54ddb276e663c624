/** Where the data of a pod lies on the host: for whoever copies it away and back (agent reference 14). */
import { access, constants } from 'node:fs/promises';
import { specOf } from './pod.record.ts';
import type { PodRecords } from './pod.records.ts';
import type { PodVolumes } from './pod-volumes.ts';

/** `mountPath` is absolute, inside the pod, without a slash at its end; `hostPath` is what the engine says. */
export type DataRoot = { mountPath: string; hostPath: string };

export type DataRootsOf = (podId: string) => Promise<DataRoot[]>;

/** Engines keep their volumes from everybody but root; one on another host has them elsewhere altogether. */
export class PodDataUnreadable extends Error {
  override name = 'PodDataUnreadable';
}

/**
 * The volumes that the present generation mounts; none for a pod that is not there or has no container yet.
 * Rejects with PodDataUnreadable where the agent does not run as root, and with EngineError.
 */
export function createPodData(deps: {
  records: Pick<PodRecords, 'get'>;
  volumes: Pick<PodVolumes, 'mounted'>;
}): DataRootsOf {
  return async (podId) => {
    const row = deps.records.get(podId);
    if (row === null || row.desired !== 'running') return [];
    const roots = await deps.volumes.mounted(podId, specOf(row).volumes);
    for (const { hostPath } of roots) await checkReadable(hostPath);
    return roots;
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
