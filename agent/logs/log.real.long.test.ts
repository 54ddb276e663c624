import { expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { createSequenceCheck, openLog, startLogPod } from '../../test/bench/log-pod.ts';
import { createAgentHome } from '../../test/fakes/agents/agent-process.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { freePorts } from '../../test/fakes/free-ports.ts';
import { createDockerodeEngine } from '../containers/engine/dockerode-engine.ts';
import { LABELS } from '../containers/engine/engine.ts';

const LINES = 200_000;
const NEVER = new AbortController().signal;
const engine = createDockerodeEngine({ socketPath: '/var/run/docker.sock', clock: systemClock });
const WRITE = `awk 'BEGIN { for (i = 1; i <= ${LINES}; i++) printf "%06d at full speed\\n", i }'`;

/** Returns the last line in the engine's log of the container, without its time. */
async function lastLine(containerId: string): Promise<string> {
  let text = '';
  const options = { tail: 1, follow: false };
  for await (const { data } of engine.containerLogs(containerId, options, NEVER)) {
    text += Buffer.from(data).toString('utf8');
  }
  return text.replace(/^\S+ /, '');
}

it('ends no stream and loses no line when the agent is frozen while a pod writes', async () => {
  const { first } = await freePorts(10);
  const home = createAgentHome({ AGENT_PORT_RANGE: `${first}-${first + 9}` });
  const owner = { [LABELS.executor]: home.executorId };
  const agent = await home.start();
  try {
    // Sleeps after writing: a pod that exits would be restarted and write everything again.
    const pod = await startLogPod(agent, `sleep 1; ${WRITE}; exec sleep 600`);
    const leave = new AbortController();
    const body = await openLog(agent, pod.id, 'since=0&follow=true', leave.signal);
    agent.child.kill('SIGSTOP');
    const beganMs = systemClock.monotonicMs();
    await eventually(
      'the pod has written everything',
      async () => (await lastLine(pod.container_id ?? '')).startsWith(String(LINES)),
      30_000 - (systemClock.monotonicMs() - beganMs),
    );
    agent.child.kill('SIGCONT');
    const check = createSequenceCheck(/"log":"(\d{6}) /g);
    for await (const chunk of body) {
      check.push(chunk);
      if (check.count() >= LINES) break;
    }
    expect(check.count()).toBe(LINES);
    leave.abort();
  } finally {
    agent.child.kill('SIGCONT');
    await agent.stop();
    for (const { id } of await engine.listContainers(owner)) await engine.removeContainer(id);
    for (const { id } of await engine.listNetworks(owner)) await engine.removeNetwork(id);
    home.remove();
  }
});
