/**
 * An agent as a process on the real engine, with a registry. `close()` removes the pods that tests have created with
 * `put`, and the images with the label of this executor.
 */
import type { PodPutInput, PodView } from '#shared/api/agent/pod.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { eventually } from '../eventually.ts';
import { startFakeRegistry } from '../external/fake-registry.ts';
import { freePorts } from '../free-ports.ts';
import { createAgentHome } from './agent-process.ts';
import { mustRun } from './real-host.ts';
import { podSpec } from './test-agent.ts';

export type PodsProcess = Awaited<ReturnType<typeof startPodsProcess>>;

/** Starts the agent. The caller must call `close()`. */
export async function startPodsProcess() {
  const registry = await startFakeRegistry();
  const { first, last } = await freePorts(20);
  const home = createAgentHome({
    AGENT_PORT_RANGE: `${first}-${last - 1}`,
    AGENT_GPU: 'none',
    AGENT_ALLOW_LOCAL_REGISTRIES: 'true',
    AGENT_POD_SUBNETS: '10.204.0.0/16',
    AGENT_MEMORY_RESERVE_MIB: '0',
  });
  let agent = await home.start();
  const pods = new Set<string>();

  async function remove(id: string): Promise<void> {
    await agent.client.deletePod(id);
    await eventually(`removal of ${id}`, async () => {
      return (await agent.client.getPod(id)).phase === 'removed';
    });
    pods.delete(id);
  }

  return {
    registry,
    executorId: home.executorId,
    agent: () => agent,
    /** Starts the next agent on the same home. The previous one must have ended. */
    async restart(): Promise<void> {
      agent = await home.start();
    },
    async put(change: Partial<PodPutInput>): Promise<string> {
      const id = systemRandom.uuid();
      const spec = podSpec({ internal_ports: [] });
      await agent.client.putPod(id, { ...spec, ...change });
      pods.add(id);
      return id;
    },
    settled: (id: string, phases: readonly PodView['phase'][] = ['running', 'failed']) =>
      eventually(`pod ${id}`, async () => {
        const view = await agent.client.getPod(id);
        return phases.includes(view.phase) && view;
      }),
    remove,
    async close(): Promise<void> {
      for (const id of pods) await remove(id);
      await agent.stop();
      const labels = `label=io.podwright.executor=${home.executorId}`;
      const ids = (await mustRun('docker', 'images', '-q', '--filter', labels)).split('\n');
      for (const id of new Set(ids.filter(Boolean))) await mustRun('docker', 'rmi', '-f', id);
      home.remove();
      await registry.close();
    },
  };
}
