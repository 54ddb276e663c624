/** An agent on a separate engine, with the pods that random operations request. */
import { PodList, type PodView } from '#shared/api/agent/pod.ts';
import type { Random } from '#shared/runtime/random.ts';
import { type CommandResult, runCommand } from '#shared/runtime/run-command.ts';
import { LABELS } from '../../agent/containers/engine/engine.ts';
import { type AgentProcess, createAgentHome } from '../fakes/agents/agent-process.ts';
import { startOwnEngine } from '../fakes/engine/own-engine.ts';
import { eventually } from '../fakes/eventually.ts';
import { freePorts } from '../fakes/free-ports.ts';

const PODS = 4;
const GPUS = 3;
const PORTS = 60;
const COMMAND_BOUNDS = { timeoutMs: 20_000, maxOutputBytes: 4 * 1024 * 1024 };

export type World = Awaited<ReturnType<typeof createWorld>>;

/** Creates the agent and the engine. Needs root. `close` removes everything. */
export async function createWorld(random: Random) {
  const own = await startOwnEngine();
  const { first, last } = await freePorts(PORTS);
  const home = createAgentHome({
    AGENT_DOCKER_SOCKET: own.socketPath,
    AGENT_PORT_RANGE: `${first}-${last}`,
    AGENT_GPU: 'simulated',
    AGENT_SIMULATED_GPUS: `NVIDIA L40S*${GPUS}`,
  });
  let agent: AgentProcess = await home.start();
  const gpus = await eventually('the inventory', async () => {
    const { gpu } = await agent.client.inventory().catch(() => ({ gpu: null }));
    return gpu?.devices.map(({ uuid }) => uuid);
  });

  return {
    own,
    random,
    executorId: home.executorId,
    gpus,
    /** Pod id of each slot; after a removal the slot gets a new id. */
    slots: Array.from({ length: PODS }, () => random.uuid()),
    /** Every id that was requested so far. */
    ids: new Set<string>(),
    agent: () => agent,
    async restartAgent(how: 'kill' | 'stop'): Promise<void> {
      await agent[how]();
      agent = await home.start();
    },
    /** Views of all pods that are not removed. */
    async views(): Promise<PodView[]> {
      const response = await agent.send({ method: 'GET', path: '/v1/pods' });
      return PodList.parse(await response.json()).pods;
    },
    /** Objects of every owner, as the docker command lists them. */
    async objects(kind: ObjectKind): Promise<EngineObject[]> {
      const state = kind === 'container' ? '{{.State}}' : 'there';
      const id = kind === 'volume' ? '{{.Name}}' : '{{.ID}}';
      const format = `${id} ${state} {{.Label "${LABELS.executor}"}} {{.Label "${LABELS.pod}"}}`;
      const list = [kind, 'ls', ...WHICH[kind], '--format', format];
      const { exitCode, stdout, stderr } = await docker(...list);
      if (exitCode !== 0) throw new Error(`docker ${kind} ls: ${stderr}`);
      return stdout.split('\n').filter(Boolean).map(parseObject);
    },
    docker,
    async close(): Promise<void> {
      await agent.stop();
      await own.remove();
      home.remove();
    },
  };

  /** Runs the docker command as another tool on the host would; returns its failures instead of throwing. */
  function docker(...args: string[]): Promise<CommandResult> {
    return runCommand('docker', ['-H', `unix://${own.socketPath}`, ...args], COMMAND_BOUNDS);
  }
}

export type ObjectKind = 'container' | 'network' | 'volume';
const WHICH: Record<ObjectKind, readonly string[]> = {
  container: ['--all', '--no-trunc'],
  network: ['--filter', 'type=custom', '--no-trunc'],
  volume: [],
};

export type EngineObject = { id: string; state: string; executor: string; pod: string };

function parseObject(line: string): EngineObject {
  const [id = '', state = '', executor = '', pod = ''] = line.split(' ');
  return { id, state, executor, pod };
}
