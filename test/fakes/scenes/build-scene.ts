/** Builds of images on the real engine, with a registry and a network for the steps. */
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inject } from 'vitest';
import type { PodSpec } from '#shared/api/agent/pod.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createDockerodeEngine } from '../../../agent/containers/engine/dockerode-engine.ts';
import { buildLabels } from '../../../agent/containers/images/build-context.ts';
import { createImages } from '../../../agent/containers/images/images.ts';
import { openDatabase } from '../../../agent/database/database.ts';
import { startFakeRegistry } from '../external/fake-registry.ts';
import { TRUSTED_CLOCK } from '../trusted-clock.ts';

const NEVER = new AbortController().signal;
export const BUILD_LIMITS: PodSpec['limits'] = {
  cpu_cores: 1,
  memory_bytes: 2 ** 27,
  shm_bytes: 0,
  pids: 64,
};
/** First line of a Dockerfile that starts from the built-in image. */
export const BUILD_BASE = 'FROM podwright.local/base:1';
/** Result of `leftOvers` if a build has left nothing. */
export const NO_BUILD_OBJECTS = { containers: [], images: [] };

export type BuildScene = Awaited<ReturnType<typeof createBuildScene>>;

/** The caller must call `clear()` after each test and `close()` at the end. */
export async function createBuildScene() {
  const engine = createDockerodeEngine({ socketPath: '/var/run/docker.sock', clock: systemClock });
  const executorId = systemRandom.uuid();
  const labels = buildLabels(executorId);
  const buildsFolder = join(tmpdir(), `podwright-builds-${executorId}`);
  const network = `podwright-test-${executorId.slice(0, 8)}`;
  const registry = await startFakeRegistry();
  const mark = { ...labels, 'io.podwright.test-run': inject('testRun') };
  const bridgeName = `pb${executorId.slice(0, 8)}`;
  const subnet = `10.203.${systemRandom.int(256)}.${16 * systemRandom.int(16)}/28`;
  await engine.ensureNetwork(network, mark, { subnet, bridgeName });
  const core = createImages({
    trust: TRUSTED_CLOCK,
    executorId,
    engine,
    buildsFolder,
    clock: systemClock,
    random: systemRandom,
    log: createLog({ name: 'test', level: 'silent' }),
    database: openDatabase(':memory:'),
    secret: systemRandom.bytes(32),
    busyboxPath: '/bin/busybox',
    networkOf: async () => network,
    diskPercent: async () => 0,
    marks: { start: 85, stop: 80 },
    usedByPods: () => [],
    buildKeysOfPods: () => [],
    onRemoved: () => undefined,
  });

  return {
    engine,
    executorId,
    labels,
    network,
    registry,
    core,
    build(dockerfile: string, change: Partial<PodSpec['limits']> = {}, signal = NEVER) {
      const wanted = { podId: executorId, dockerfile, auth: undefined };
      const limits = { ...BUILD_LIMITS, ...change };
      return core.builds.ensure({ ...wanted, limits }, () => undefined, signal);
    },
    async outputOf(dockerfile: string): Promise<string> {
      const lines = await core.logs.read(core.builds.keyOf(dockerfile, undefined));
      return lines.map(({ log }) => log).join('');
    },
    /** Returns the objects of builds in the engine, except finished images. */
    async leftOvers() {
      const containers = await engine.listContainers(labels);
      return { containers, images: await engine.listImages({ labels, unused: true }) };
    },
    /** Removes the images that were built. */
    async clear(): Promise<void> {
      for (const { reference } of core.store.list()) await engine.removeImage(reference);
    },
    async close(): Promise<void> {
      await engine.removeNetwork(network);
      await registry.close();
      rmSync(buildsFolder, { recursive: true, force: true });
    },
  };
}
