/** Removes all objects of one executor from the engine, for a host that leaves the marketplace or is set up again. */
import { messageOf } from '#shared/runtime/errors.ts';
import { type ContainerEngine, LABELS } from '../containers/engine/engine.ts';
import { executorLabels } from '../containers/engine/labels.ts';
import { buildLabels } from '../containers/images/build-context.ts';
import { removeBuilt } from '../containers/images/build-sweep.ts';
import type { Firewall } from '../containers/network/firewall.ts';

/** Short grace period for all pods, because the operator waits for the command. */
const STOP_GRACE_S = 10;

/** Returns the numbers of removed objects. Touches only objects with this executor's labels. Idempotent. */
export async function removeAll({
  engine,
  executorId,
  firewall,
}: {
  engine: ContainerEngine;
  executorId: string;
  firewall: Firewall;
}): Promise<{
  containers: number;
  networks: number;
  /** Includes the data of pods. */
  volumes: number;
  /** Images that were built on this host. Images from registries are not removed. */
  images: number;
  /** Error of removing the firewall rules; null if they were removed or another agent needs them. */
  firewallProblem: string | null;
}> {
  const labels = executorLabels(executorId);
  const containers = await engine.listContainers(labels);
  // Lets the pods' processes shut down. A container that has vanished in the meantime is ignored.
  await Promise.all(containers.map(({ id }) => engine.stopContainer(id, STOP_GRACE_S)));
  for (const { id } of containers) await engine.removeContainer(id);
  const networks = await engine.listNetworks(labels);
  for (const network of networks) await engine.removeNetwork(network.id);
  const volumes = await engine.listVolumes(labels);
  for (const { name } of volumes) await engine.removeVolume(name);
  const images = await removeBuilt(engine, buildLabels(executorId));
  // All agents on the engine share the rules, so the last one removes them.
  const left = await engine.listNetworks({ [LABELS.managed]: '1' });
  const removal = left.length === 0 ? firewall.remove() : Promise.resolve();
  const firewallProblem = await removal.then(() => null, messageOf);
  return {
    containers: containers.length,
    networks: networks.length,
    volumes: volumes.length,
    images,
    firewallProblem,
  };
}
