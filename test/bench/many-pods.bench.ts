/** A hundred pods on one agent and the real engine: time of the launches, and processor time and memory of the agent. */
import type { PodSpecInput } from '#shared/api/agent/pod.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { type AgentProcess, createAgentHome } from '../fakes/agents/agent-process.ts';
import { cpuSeconds, residentMb } from '../measure/process-usage.ts';
import { median, type Row, ratioAtMost } from '../measure/row.ts';

const PODS = 100;
/** Launches whose median is compared: the first pods with the last. */
const COMPARED = 10;
const PORTS = '28200-28599';
const POLL_MS = 50;
/** Wait before a measurement, for several reconciles, samples and garbage collections. */
const SETTLE_MS = 30_000;
const MEASURED_MS = 60_000;
const MS_PER_SECOND = 1_000;
const MAX_LAUNCH_RATIO = 2;
const MAX_MEMORY_RATIO = 2;
const MAX_CORES = 0.5;

const SPEC: PodSpecInput = {
  generation: 1,
  image: { reference: 'podwright.local/base:1' },
  internal_ports: [22, 8_000],
  limits: { cpu_cores: 0.1, memory_bytes: 64 * 1024 * 1024, shm_bytes: 0, pids: 64 },
  stop_grace_seconds: 0,
};

/** Measures the same agent with one pod and with all of them. */
export async function manyPods(): Promise<Row[]> {
  const home = createAgentHome({ AGENT_PORT_RANGE: PORTS });
  process.once('exit', () => home.remove());
  const agent = await home.start();
  const ids: string[] = [];
  try {
    const took: number[] = [];
    const launchNext = async () => {
      const id = systemRandom.uuid();
      ids.push(id);
      took.push(await launch(agent, id));
    };
    await launchNext();
    const alone = await usage(agent);
    while (ids.length < PODS) await launchNext();
    const together = await usage(agent);
    // The first launch also builds the image and warms the caches of the engine.
    const first = median(took.slice(1, 1 + COMPARED));
    return [
      ratioAtMost(
        `launch of the last of ${PODS} pods`,
        'ms',
        'launch of the first',
        { ours: median(took.slice(-COMPARED)), reference: first },
        MAX_LAUNCH_RATIO,
      ),
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
  } finally {
    await Promise.allSettled(ids.map((id) => remove(agent, id)));
    await agent.stop();
  }
}

/** Launches a pod and returns the milliseconds until the agent reports that it runs. */
async function launch({ client }: AgentProcess, id: string): Promise<number> {
  const beganMs = systemClock.now();
  let view = await client.putPod(id, SPEC);
  while (view.phase !== 'running') {
    if (view.phase === 'failed') throw new Error(`launch failed: ${view.message}`);
    await systemClock.sleep(POLL_MS);
    view = await client.getPod(id);
  }
  return view.phase_since_ms - beganMs;
}

async function usage({ child }: AgentProcess): Promise<{ memoryMb: number; cpuSeconds: number }> {
  await systemClock.sleep(SETTLE_MS);
  const before = cpuSeconds(child.pid);
  await systemClock.sleep(MEASURED_MS);
  return { memoryMb: residentMb(child.pid), cpuSeconds: cpuSeconds(child.pid) - before };
}

async function remove({ client }: AgentProcess, id: string): Promise<void> {
  await client.deletePod(id);
  while ((await client.getPod(id)).phase !== 'removed') await systemClock.sleep(POLL_MS);
}
