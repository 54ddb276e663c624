/** Time from the request to a running container: the agent, compared with the docker command line. */
import type { PodSpecInput } from '#shared/api/agent/pod.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import type { AgentProcess } from '../fakes/agents/agent-process.ts';
import { launchPod, removePods } from '../fakes/agents/launch-pod.ts';
import { median, type Row, ratioAtMost } from '../measure/row.ts';
import { BASE_IMAGE, createDockerLaunches, PUBLISHED_PORT } from './docker-launch.ts';

const PAIRS = 10;
const WARM_UP_PAIRS = 2;
const MAX_RATIO = 1.1;
/**
 * Interval of the polls. It is long, because the time is not taken from the polls: the agent reports the start of the
 * phase, and the reference runs without polls.
 */
const POLL_MS = 250;

const SPEC: PodSpecInput = {
  generation: 1,
  image: { reference: BASE_IMAGE },
  internal_ports: [22, PUBLISHED_PORT],
  limits: {
    cpu_cores: 1,
    memory_bytes: 512 * 1024 * 1024,
    shm_bytes: 64 * 1024 * 1024,
    pids: 512,
  },
  stop_grace_seconds: 0,
};

/** Measures launches that alternate with the reference, so that load on the host affects both alike. */
export async function createToRunning(agent: AgentProcess): Promise<Row> {
  const docker = createDockerLaunches(SPEC);
  const ours: number[] = [];
  const reference: number[] = [];
  for (let pair = 0; pair < WARM_UP_PAIRS + PAIRS; pair += 1) {
    const one = await launchByAgent(agent);
    const other = await docker.launch();
    if (pair < WARM_UP_PAIRS) continue;
    ours.push(one);
    reference.push(other);
  }
  return ratioAtMost(
    'create to running',
    'ms',
    'docker network create + docker run -d, same options',
    { ours: median(ours), reference: median(reference) },
    MAX_RATIO,
  );
}

/**
 * Launches a pod and returns the milliseconds until it runs. Both times are from this host's clock: the agent reports
 * the start of the phase.
 */
async function launchByAgent(agent: AgentProcess): Promise<number> {
  const beganMs = systemClock.now();
  const { id, phase_since_ms: runningMs } = await launchPod(agent, SPEC, { pollMs: POLL_MS });
  await removePods(agent, [id], POLL_MS);
  return runningMs - beganMs;
}
