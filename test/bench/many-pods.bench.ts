/**
 * A hundred pods on one agent and the real engine: time of the launches, compared with the first launches and with the
 * docker command line beside the same pods, and processor time and memory of the agent.
 */
import type { PodSpecInput } from '#shared/api/agent/pod.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import type { AgentProcess } from '../fakes/agents/agent-process.ts';
import { launchPod, removePods } from '../fakes/agents/launch-pod.ts';
import { createMeasuredHome } from '../measure/measured-agent.ts';
import { cpuSeconds, residentMb } from '../measure/process-usage.ts';
import { median, type Row, ratioAtMost } from '../measure/row.ts';
import { BASE_IMAGE, createDockerLaunches, PUBLISHED_PORT } from './docker-launch.ts';

const PODS = 100;
/** Launches whose median is compared: the first pods with the last. */
const COMPARED = 10;
const PORTS = '28200-28599';
/** Wait before a measurement, for several reconciles, samples and garbage collections. */
const SETTLE_MS = 30_000;
const MEASURED_MS = 60_000;
const MS_PER_SECOND = 1_000;
const MAX_GROWTH = 2;
const MAX_LAUNCH_RATIO = 1.5;
const MAX_MEMORY_RATIO = 2;
const MAX_CORES = 0.5;

const SPEC: PodSpecInput = {
  generation: 1,
  image: { reference: BASE_IMAGE },
  internal_ports: [22, PUBLISHED_PORT],
  limits: { cpu_cores: 0.1, memory_bytes: 64 * 1024 * 1024, shm_bytes: 0, pids: 64 },
  stop_grace_seconds: 0,
};

/** Median launch times in milliseconds. */
type Launches = { ours: number; docker: number };
type Usage = { memoryMb: number; cpuSeconds: number };

/** Measures the same agent with one pod and with all of them. */
export async function manyPods(): Promise<Row[]> {
  const home = createMeasuredHome({ AGENT_PORT_RANGE: PORTS });
  const agent = await home.start();
  const docker = createDockerLaunches(SPEC);
  const ids: string[] = [];

  async function launch(): Promise<number> {
    const beganMs = systemClock.now();
    const { id, phase_since_ms: runningMs } = await launchPod(agent, SPEC);
    ids.push(id);
    return runningMs - beganMs;
  }
  /** Alternates with the reference, so that load on the host affects both alike. */
  async function compare(): Promise<Launches> {
    const [ours, reference]: [number[], number[]] = [[], []];
    for (let pair = 0; pair < COMPARED; pair += 1) {
      ours.push(await launch());
      reference.push(await docker.launch());
    }
    return { ours: median(ours), docker: median(reference) };
  }

  try {
    // The first launch also builds the image and warms the caches of the engine.
    await launch();
    const alone = await usage(agent);
    const first = await compare();
    while (ids.length < PODS - COMPARED) await launch();
    const last = await compare();
    const together = await usage(agent);
    await removePods(agent, ids);
    return [...launchRows(first, last), ...usageRows(alone, together)];
  } finally {
    await agent.stop();
  }
}

function launchRows(first: Launches, last: Launches): Row[] {
  const row = (name: string, against: string, ours: number, reference: number, bar: number) =>
    ratioAtMost(name, 'ms', against, { ours, reference }, bar);
  const ofLast = `launch of the last of ${PODS} pods`;
  const byDocker = 'docker network create + docker run -d, same options';
  return [
    row(ofLast, 'launch of the first', last.ours, first.ours, MAX_GROWTH),
    row(ofLast, `${byDocker}, beside them`, last.ours, last.docker, MAX_LAUNCH_RATIO),
    row('launch of the first pods', byDocker, first.ours, first.docker, MAX_LAUNCH_RATIO),
  ];
}

function usageRows(alone: Usage, together: Usage): Row[] {
  return [
    ratioAtMost(
      `agent memory, ${PODS} pods`,
      'MB',
      'one pod',
      { ours: together.memoryMb, reference: alone.memoryMb },
      MAX_MEMORY_RATIO,
    ),
    ratioAtMost(
      `agent processor time, ${PODS} pods`,
      's',
      'elapsed time',
      { ours: together.cpuSeconds, reference: MEASURED_MS / MS_PER_SECOND },
      MAX_CORES,
    ),
  ];
}

async function usage({ child }: AgentProcess): Promise<Usage> {
  await systemClock.sleep(SETTLE_MS);
  const before = cpuSeconds(child.pid);
  await systemClock.sleep(MEASURED_MS);
  return { memoryMb: residentMb(child.pid), cpuSeconds: cpuSeconds(child.pid) - before };
}
