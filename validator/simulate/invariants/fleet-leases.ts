/** No GPU is leased twice: compares the pods that a host runs. Pure. */
import type { PodView } from '#shared/api/agent/pod.ts';

/** Phases of a pod that holds no GPU any more. */
const GONE: readonly PodView['phase'][] = ['removed'];

/** Returns a GPU of `added` that another pod of the host has, with that pod; null if there is none. */
export function doubleLease(
  pods: Iterable<PodView>,
  added: { podId: string; gpuUuids: readonly string[] },
): { gpuUuid: string; podId: string } | null {
  for (const { id, phase, gpu_uuids: uuids } of pods) {
    if (id === added.podId || GONE.includes(phase)) continue;
    const gpuUuid = added.gpuUuids.find((uuid) => uuids.includes(uuid));
    if (gpuUuid !== undefined) return { gpuUuid, podId: id };
  }
  return null;
}
