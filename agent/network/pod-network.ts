/** The bridge of a pod: one per pod, so that pods reach neither each other nor anything by name (agent reference 10). */
import { type ContainerEngine, LABELS } from '../docker/engine.ts';

export type PodNetworks = ReturnType<typeof createPodNetworks>;

/** Enough of the id to be unique on a host, short enough to read in `docker network ls`. */
const ID_CHARS = 12;

/** The name of a pod's network. */
export function networkName(podId: string): string {
  return `podwright-${podId.replaceAll('-', '').slice(0, ID_CHARS)}`;
}

/** Networks carry the executor's label and the pod's: two agents on one engine keep apart by it. */
export function createPodNetworks({
  engine,
  executorId,
}: {
  engine: ContainerEngine;
  executorId: string;
}) {
  const labelsOf = (podId: string) => ({
    [LABELS.managed]: '1',
    [LABELS.executor]: executorId,
    [LABELS.pod]: podId,
  });
  return {
    /** The network's name; makes it when it is missing. */
    async ensure(podId: string): Promise<string> {
      const name = networkName(podId);
      await engine.ensureNetwork(name, labelsOf(podId));
      return name;
    },
    /** Removes the pod's networks, found by label: a network of another owner under our name stays. */
    async remove(podId: string): Promise<void> {
      for (const network of await engine.listNetworks(labelsOf(podId))) {
        await engine.removeNetwork(network.id);
      }
    },
  };
}
