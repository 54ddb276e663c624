/** Time from the request to a running container: the agent, compared with the docker command line. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { PodSpecInput } from '#shared/api/agent/pod.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { CAPABILITIES } from '../../agent/containers/engine/container-options.ts';
import type { AgentProcess } from '../fakes/agents/agent-process.ts';
import { median, type Row, ratioAtMost } from '../measure/row.ts';

const run = promisify(execFile);

const PAIRS = 10;
const WARM_UP_PAIRS = 2;
const MAX_RATIO = 1.1;
/**
 * Interval of the polls. It is long, because the time is not taken from the polls: the agent reports the start of the
 * phase, and the reference runs without polls.
 */
const POLL_MS = 250;
const IMAGE = 'podwright.local/base:1';
const MEMORY_BYTES = 512 * 1024 * 1024;
const SHM_BYTES = 64 * 1024 * 1024;
/** Host port of the reference; the agent has a separate range. */
const REFERENCE_PORT = 29_080;
/** Published container port. Port 22 is excluded, because the SSH gateway listens on it. */
const PUBLISHED_PORT = 8_000;

const SPEC: PodSpecInput = {
  generation: 1,
  image: { reference: IMAGE },
  internal_ports: [22, PUBLISHED_PORT],
  limits: { cpu_cores: 1, memory_bytes: MEMORY_BYTES, shm_bytes: SHM_BYTES, pids: 512 },
  stop_grace_seconds: 0,
};

/** Measures launches that alternate with the reference, so that load on the host affects both alike. */
export async function createToRunning(agent: AgentProcess): Promise<Row> {
  const ours: number[] = [];
  const reference: number[] = [];
  for (let pair = 0; pair < WARM_UP_PAIRS + PAIRS; pair += 1) {
    const one = await launchByAgent(agent);
    const other = await launchByDocker();
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
async function launchByAgent({ client }: AgentProcess): Promise<number> {
  const id = systemRandom.uuid();
  const beganMs = systemClock.now();
  let view = await client.putPod(id, SPEC);
  while (view.phase !== 'running') {
    if (view.phase === 'failed') throw new Error(`launch failed: ${view.message}`);
    await systemClock.sleep(POLL_MS);
    view = await client.getPod(id);
  }
  const tookMs = view.phase_since_ms - beganMs;
  await client.deletePod(id);
  while ((await client.getPod(id)).phase !== 'removed') await systemClock.sleep(POLL_MS);
  return tookMs;
}

async function launchByDocker(): Promise<number> {
  const name = `podwright-bench-${systemRandom.uuid().slice(0, 8)}`;
  const beganMs = systemClock.monotonicMs();
  try {
    await run('docker', [
      'network',
      'create',
      '--driver',
      'bridge',
      '--opt',
      'com.docker.network.bridge.enable_icc=false',
      name,
    ]);
    await run('docker', ['run', '-d', '--name', name, '--network', name, ...sameOptions(), IMAGE]);
    return systemClock.monotonicMs() - beganMs;
  } finally {
    await run('docker', ['rm', '--force', '--volumes', name]).catch(() => undefined);
    await run('docker', ['network', 'rm', name]).catch(() => undefined);
  }
}

/** The options of agent/containers/engine/container-options.ts as command-line flags. */
function sameOptions(): string[] {
  const ports = ['tcp', 'udp'].flatMap((protocol) => [
    '--publish',
    `${REFERENCE_PORT}:${PUBLISHED_PORT}/${protocol}`,
  ]);
  return [
    ...ports,
    '--init',
    '--memory',
    String(MEMORY_BYTES),
    '--memory-swap',
    String(MEMORY_BYTES),
    '--cpus',
    '1',
    '--pids-limit',
    '512',
    '--shm-size',
    String(SHM_BYTES),
    '--security-opt',
    'no-new-privileges',
    '--cap-drop',
    'ALL',
    ...CAPABILITIES.flatMap((capability) => ['--cap-add', capability]),
    '--log-opt',
    'max-size=50m',
    '--log-opt',
    'max-file=3',
  ];
}
