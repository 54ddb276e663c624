/** Whether what a container uses can be read from the kernel's files, tried with one that sleeps. */
import type { Random } from '#shared/runtime/random.ts';
import { type ContainerEngine, LABELS } from '../containers/engine/engine.ts';
import { createFileUsage, createKernelFiles } from '../metrics/usage/kernel-usage.ts';

/** Longer than a look takes, and not for ever where the doctor is killed. */
const SLEEP_SECONDS = '60';
const LIMITS = { cpuCores: 0.1, memoryBytes: 2 ** 26, shmBytes: 2 ** 20, pids: 16 };

/** The version of the control groups that tell its memory. Rejects with the reason why none do. */
export async function tryUsageFiles(options: {
  engine: Pick<
    ContainerEngine,
    'createContainer' | 'startContainer' | 'inspectContainer' | 'removeContainer'
  >;
  random: Random;
  executorId: string;
  /** Of its label: containers of one kind are removed by the next doctor if this one is killed. */
  kind: string;
  ensureBuiltinImage(): Promise<string>;
}): Promise<1 | 2> {
  const { engine, random } = options;
  const id = await engine.createContainer({
    ...{ name: `podwright-doctor-${random.uuid()}`, image: await options.ensureBuiltinImage() },
    labels: {
      [LABELS.executor]: options.executorId,
      [LABELS.kind]: options.kind,
      [LABELS.managed]: '1',
    },
    ...{ entrypoint: ['sleep'], command: [SLEEP_SECONDS], environment: {} },
    ...{ network: null, ports: [], gpuUuids: [], limits: LIMITS, stopGraceSeconds: 0 },
  });
  try {
    await engine.startContainer(id);
    const files = createFileUsage(createKernelFiles());
    const place = files.locate(id, (await engine.inspectContainer(id))?.pid ?? 0);
    files.read(place);
    return place.memoryVersion;
  } finally {
    await engine.removeContainer(id);
  }
}
