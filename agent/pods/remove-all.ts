/** Takes everything of one executor off the engine: for a host that leaves the market, or a fresh start. */
import { messageOf } from '#shared/runtime/errors.ts';
import { type ContainerEngine, LABELS } from '../containers/engine/engine.ts';
import { buildLabels } from '../containers/images/build-context.ts';
import { removeBuilt } from '../containers/images/build-sweep.ts';
import type { Firewall } from '../containers/network/firewall.ts';

/** For all pods at a time, whatever theirs is: somebody waits for the end. */
const STOP_GRACE_S = 10;

/** What was removed. Only objects with our label and this executor's id are touched; repeating is harmless. */
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
  /** With the data of pods. */
  volumes: number;
  /** That were built here; images that came from registries stay. */
  images: number;
  /** Why the rules could not be taken away; null when they were, or others still need them. */
  firewallProblem: string | null;
}> {
  const labels = { [LABELS.managed]: '1', [LABELS.executor]: executorId };
  const containers = await engine.listContainers(labels);
  // What runs in them may want to put its things in order; a container that is gone meanwhile is no failure.
  await Promise.all(containers.map(({ id }) => engine.stopContainer(id, STOP_GRACE_S)));
  for (const { id } of containers) await engine.removeContainer(id);
  const networks = await engine.listNetworks(labels);
  for (const network of networks) await engine.removeNetwork(network.id);
  const volumes = await engine.listVolumes(labels);
  for (const { name } of volumes) await engine.removeVolume(name);
  const images = await removeBuilt(engine, buildLabels(executorId));
  // The rules are those of every agent on the engine: the last one takes them away, if there are any.
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
