/**
 * Fifty usage samples of containers on the real engine: read from the kernel's files, compared with queries to the
 * engine.
 */
import { systemClock } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createDockerodeEngine } from '../../agent/containers/engine/dockerode-engine.ts';
import { type ContainerSpec, LABELS } from '../../agent/containers/engine/engine.ts';
import { ensureBuiltinImage } from '../../agent/containers/images/builtin-image.ts';
import { createFileUsage, createKernelFiles } from '../../agent/metrics/usage/kernel-usage.ts';
import { createPodUsage } from '../../agent/metrics/usage/pod-usage.ts';
import { median, type Row, ratioAtMost } from '../measure/row.ts';
import { removeLabelled } from '../run/leftovers.ts';

const PODS = 10;
const LOOKS = 50;
const CYCLES = 5;
const MICROSECONDS_PER_MS = 1_000;
const MAX_RATIO = 0.25;
const BUSYBOX = '/bin/busybox';

/** Measures the CPU time of this process only; the engine's CPU time for its answers is additional. */
export async function podUsageCost(): Promise<Row> {
  const engine = createDockerodeEngine({ socketPath: '/var/run/docker.sock', clock: systemClock });
  const executorId = systemRandom.uuid();
  const labels = { [LABELS.executor]: executorId, [LABELS.kind]: 'bench' };
  process.once('exit', () => removeLabelled(`${LABELS.executor}=${executorId}`));
  const ids: string[] = [];
  try {
    const image = await ensureBuiltinImage(engine, BUSYBOX);
    for (let count = 0; count < PODS; count += 1) {
      ids.push(await engine.createContainer(sleeper(image, labels)));
      await engine.startContainer(ids.at(-1) ?? '');
    }
    const log = createLog({ name: 'bench', level: 'warn' });
    const files = createFileUsage(createKernelFiles());
    const usage = createPodUsage({ clock: systemClock, log, engine, files });
    const first = [...(await usage.read(ids)).values()];
    if (first.includes(null)) throw new Error('some containers report no usage');
    const rounds = async (sample: () => Promise<unknown>) => {
      for (let round = 0; round < LOOKS / PODS; round += 1) await sample();
    };
    const measured = {
      ours: await cpuMs(CYCLES, () => rounds(() => usage.read(ids))),
      // A query to the engine takes up to a second per container.
      reference: await cpuMs(1, () =>
        rounds(() => Promise.all(ids.map((id) => engine.containerUsage(id)))),
      ),
    };
    const name = `${LOOKS} usage samples, processor time`;
    return ratioAtMost(name, 'ms', "the engine's stats", measured, MAX_RATIO);
  } finally {
    for (const id of ids) await engine.removeContainer(id);
  }
}

function sleeper(image: string, labels: Record<string, string>): ContainerSpec {
  return {
    name: `podwright-bench-${systemRandom.uuid()}`,
    image,
    labels,
    entrypoint: ['sleep'],
    command: ['600'],
    environment: {},
    network: null,
    ports: [],
    gpuUuids: [],
    stopGraceSeconds: 0,
    limits: { cpuCores: 0.1, memoryBytes: 2 ** 24, shmBytes: 2 ** 20, pids: 16 },
  };
}

/** The median of several cycles, after one that compiles the code. */
async function cpuMs(cycles: number, cycle: () => Promise<unknown>): Promise<number> {
  await cycle();
  const took: number[] = [];
  for (let count = 0; count < cycles; count += 1) {
    const before = process.cpuUsage();
    await cycle();
    const { user, system } = process.cpuUsage(before);
    took.push((user + system) / MICROSECONDS_PER_MS);
  }
  return median(took);
}
