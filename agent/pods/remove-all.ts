/** Takes everything of one executor off the engine: for a host that leaves the market, or a fresh start. */
import { type ContainerEngine, LABELS } from '../docker/engine.ts';
import type { Firewall } from '../network/firewall.ts';

/** What was removed. Only objects with our label and this executor's id are touched; repeating is harmless. */
export async function removeAll({
  engine,
  executorId,
  firewall,
}: {
  engine: ContainerEngine;
  executorId: string;
  firewall: Firewall;
}): Promise<{ containers: number; networks: number }> {
  const labels = { [LABELS.managed]: '1', [LABELS.executor]: executorId };
  const containers = await engine.listContainers(labels);
  for (const container of containers) await engine.removeContainer(container.id);
  const networks = await engine.listNetworks(labels);
  for (const network of networks) await engine.removeNetwork(network.id);
  // The rules are those of every agent on the engine: the last one takes them away, if there are any.
  const left = await engine.listNetworks({ [LABELS.managed]: '1' });
  if (left.length === 0) await firewall.remove().catch(() => undefined);
  return { containers: containers.length, networks: networks.length };
}
