/** An agent as a process with one pod, and terminals in its pods. */
import { MAX_TERMINAL_MESSAGE_BYTES } from '#shared/api/agent/terminal.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { createDockerodeEngine } from '../../../agent/containers/engine/dockerode-engine.ts';
import { LABELS } from '../../../agent/containers/engine/engine.ts';
import { startLogPod } from '../../bench/log-pod.ts';
import { eventually } from '../eventually.ts';
import { freePorts } from '../free-ports.ts';
import { createTerminalClient, type TerminalClient } from '../scenes/terminal-client.ts';
import { createAgentHome } from './agent-process.ts';
import { mustRun } from './real-host.ts';

export type TerminalHost = Awaited<ReturnType<typeof startTerminalHost>>;

/** The caller must call `close()`. `onLog` receives the agent's output. */
export async function startTerminalHost(onLog: (text: string) => void = () => undefined) {
  const engine = createDockerodeEngine({ socketPath: '/var/run/docker.sock', clock: systemClock });
  const { first } = await freePorts(10);
  const range = `${first}-${first + 9}`;
  const home = createAgentHome({ AGENT_PORT_RANGE: range, AGENT_LOG_LEVEL: 'info' }, onLog);
  let agent = await home.start();
  const pod = await startLogPod(agent, 'exec sleep 100000');
  const processes = () => mustRun('docker', 'exec', pod.container_id ?? '', 'ps');

  return {
    pod,
    agent: () => agent,
    /** Starts the next agent on the same home. The previous one must have ended. */
    async restart(): Promise<void> {
      agent = await home.start();
    },
    async open(query = '', podId = pod.id): Promise<TerminalClient> {
      const path = `/v1/pods/${podId}/exec?${query}`;
      return createTerminalClient(
        await agent.connect({ path, maxMessageBytes: MAX_TERMINAL_MESSAGE_BYTES }),
      );
    },
    /** Lists the processes of the pod. */
    processes,
    /** Disconnects the clients and waits until no shell runs. */
    async leave(...clients: TerminalClient[]): Promise<void> {
      for (const { socket } of clients) socket.terminate();
      await eventually('the end of the shells', async () => !(await processes()).includes('sh -l'));
    },
    async close(): Promise<void> {
      await agent.stop();
      const owner = { [LABELS.executor]: home.executorId };
      for (const { id } of await engine.listContainers(owner)) await engine.removeContainer(id);
      for (const { id } of await engine.listNetworks(owner)) await engine.removeNetwork(id);
      home.remove();
    },
  };
}
