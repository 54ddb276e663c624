/** Takes everything of one executor off the engine: for a host that leaves the market, or a fresh start. */
import { type ContainerEngine, LABELS } from '../docker/engine.ts';

/** What was removed. Only objects with our label and this executor's id are touched; repeating is harmless. */
export async function removeAll(
  engine: ContainerEngine,
  executorId: string,
): Promise<{ containers: number; networks: number }> {
  const labels = { [LABELS.managed]: '1', [LABELS.executor]: executorId };
  const containers = await engine.listContainers(labels);
  for (const container of containers) await engine.removeContainer(container.id);
  const networks = await engine.listNetworks(labels);
  for (const network of networks) await engine.removeNetwork(network.id);
  return { containers: containers.length, networks: networks.length };
}
