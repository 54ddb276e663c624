/** Agents of measurements on this computer's engine. Nothing of them stays when the measurement ends, however it ends. */
import { LABELS } from '../../agent/containers/engine/engine.ts';
import {
  type AgentHome,
  type AgentProcess,
  createAgentHome,
} from '../fakes/agents/agent-process.ts';
import { removeLabelled } from '../run/leftovers.ts';

/**
 * Creates a home. When this process exits, the agent is killed and its pods, their networks and volumes, and the home
 * are removed.
 */
export function createMeasuredHome(environment: Record<string, string>): AgentHome {
  const home = createAgentHome(environment);
  let latest: AgentProcess | null = null;
  process.once('exit', () => {
    latest?.child.kill('SIGKILL');
    removeLabelled(`${LABELS.executor}=${home.executorId}`);
    home.remove();
  });
  return {
    ...home,
    async start() {
      latest = await home.start();
      return latest;
    },
  };
}

/** Runs `work` with an agent process in a temporary home, and ends the agent afterwards. */
export async function withAgent(
  ports: string,
  work: (agent: AgentProcess) => Promise<void>,
): Promise<void> {
  const agent = await createMeasuredHome({ AGENT_PORT_RANGE: ports }).start();
  try {
    await work(agent);
  } finally {
    await agent.stop();
  }
}
