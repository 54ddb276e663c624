/** The reference of launches: the docker command line with the options that the agent uses. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { PodSpecInput } from '#shared/api/agent/pod.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { CAPABILITIES, shmSizeOf } from '../../agent/containers/engine/container-options.ts';
import { removeLabelled } from '../run/leftovers.ts';

const run = promisify(execFile);

export const BASE_IMAGE = 'podwright.local/base:1';
/** Published container port. Port 22 is excluded, because the SSH gateway listens on it. */
export const PUBLISHED_PORT = 8_000;
/** Host port of the reference; agents have separate ranges. */
const REFERENCE_PORT = 29_080;

/** Launches containers one at a time. When this process exits, an unfinished launch is removed. */
export function createDockerLaunches({ limits }: Pick<PodSpecInput, 'limits'>) {
  const label = `io.podwright.test-run=bench-${systemRandom.uuid()}`;
  process.once('exit', () => removeLabelled(label));

  return {
    /** Launches and removes a container; returns the milliseconds of the launch. */
    async launch(): Promise<number> {
      const name = `podwright-bench-${systemRandom.uuid().slice(0, 8)}`;
      const beganMs = systemClock.monotonicMs();
      try {
        await run('docker', ['network', 'create', '--label', label, ...NETWORK_OPTIONS, name]);
        const place = ['--name', name, '--label', label, '--network', name];
        await run('docker', ['run', '-d', ...place, ...sameOptions(limits), BASE_IMAGE]);
        return systemClock.monotonicMs() - beganMs;
      } finally {
        await run('docker', ['rm', '--force', '--volumes', name]).catch(() => undefined);
        await run('docker', ['network', 'rm', name]).catch(() => undefined);
      }
    },
  };
}

const NETWORK_OPTIONS = [
  '--driver',
  'bridge',
  '--opt',
  'com.docker.network.bridge.enable_icc=false',
];

/** The options of agent/containers/engine/container-options.ts as command-line flags. */
function sameOptions(limits: PodSpecInput['limits']): string[] {
  const ports = ['tcp', 'udp'].flatMap((protocol) => [
    '--publish',
    `${REFERENCE_PORT}:${PUBLISHED_PORT}/${protocol}`,
  ]);
  return [
    ...ports,
    '--init',
    '--memory',
    String(limits.memory_bytes),
    '--memory-swap',
    String(limits.memory_bytes),
    '--cpus',
    String(limits.cpu_cores),
    '--pids-limit',
    String(limits.pids),
    '--shm-size',
    String(shmSizeOf({ shmBytes: limits.shm_bytes, memoryBytes: limits.memory_bytes })),
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
