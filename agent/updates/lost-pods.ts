/** Pods that a new version of the agent has lost: what ends, or is removed, as renters wish is no fault of its. */
import { type ContainerEngine, LABELS } from '../containers/engine/engine.ts';
import type { PodRow } from '../pods/pod.store.ts';
import type { PodMark } from './update.state.ts';

export type LostPodsOptions = {
  executorId: string;
  engine: Pick<ContainerEngine, 'inspectContainer'>;
  /** The pods on record just now; those that this version cannot read are left out. */
  readPods(): readonly Pick<PodRow, 'id' | 'desired' | 'generation' | 'staged_json'>[];
};

/**
 * Of the pods that ran, the ids of those that are to run as they did, by the record, and whose container is gone or no
 * longer carries our labels. One that has ended by itself is still there, and one that was changed has another generation.
 */
export function createLostPods({ executorId, engine, readPods }: LostPodsOptions) {
  return async (pods: readonly PodMark[]): Promise<string[]> => {
    if (pods.length === 0) return [];
    const lost: PodMark[] = [];
    for (const pod of pods) {
      const labels = (await engine.inspectContainer(pod.container_id))?.labels ?? {};
      const isOurs = labels[LABELS.executor] === executorId && labels[LABELS.pod] === pod.id;
      if (!isOurs) lost.push(pod);
    }
    if (lost.length === 0) return [];
    // Read last: a renter's word is on record before anything of his pod is removed.
    const wanted = readPods().filter(
      ({ desired, staged_json: staged }) => desired === 'running' && staged === null,
    );
    const isWanted = ({ id, generation }: PodMark) =>
      wanted.some((row) => row.id === id && row.generation === generation);
    return lost.filter(isWanted).map(({ id }) => id);
  };
}
