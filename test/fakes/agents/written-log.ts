/** An agent with a pod that has written a log with numbered lines, and WebSockets that read the log. */
import type { WebSocket } from 'ws';
import { systemClock } from '#shared/runtime/clock.ts';
import { createDockerodeEngine } from '../../../agent/containers/engine/dockerode-engine.ts';
import { LABELS } from '../../../agent/containers/engine/engine.ts';
import { startLogPod } from '../../bench/log-pod.ts';
import { eventually } from '../eventually.ts';
import { freePorts } from '../free-ports.ts';
import { createAgentHome } from './agent-process.ts';

export type WrittenLog = Awaited<ReturnType<typeof writeLog>>;

/** Resolves when the log has `lines` lines, up to 999 999. The caller must call `close()`. */
export async function writeLog(lines: number) {
  const engine = createDockerodeEngine({ socketPath: '/var/run/docker.sock', clock: systemClock });
  const { first } = await freePorts(10);
  const home = createAgentHome({ AGENT_PORT_RANGE: `${first}-${first + 9}` });
  const agent = await home.start();
  const write = `awk 'BEGIN { for (i = 1; i <= ${lines}; i++) printf "%06d in the log\\n", i }'`;
  const pod = await startLogPod(agent, `${write}; exec sleep 100000`);
  const last = String(lines).padStart(6, '0');
  await eventually('a complete log', async () => {
    const tail = await agent.send({ method: 'GET', path: `/v1/pods/${pod.id}/logs?tail=1` });
    return (await tail.text()).includes(`"log":"${last} `);
  });
  return {
    agent,
    pod,
    open: (query: string): Promise<WebSocket> =>
      agent.connect({ path: `/v1/pods/${pod.id}/logs?${query}`, maxMessageBytes: 1024 * 1024 }),
    async close(): Promise<void> {
      await agent.stop();
      const owner = { [LABELS.executor]: home.executorId };
      for (const { id } of await engine.listContainers(owner)) await engine.removeContainer(id);
      for (const { id } of await engine.listNetworks(owner)) await engine.removeNetwork(id);
      home.remove();
    },
  };
}
