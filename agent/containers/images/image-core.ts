/** Everything about images put together: fetching, building, logins, and what is on the disk. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { DatabaseSync } from '#shared/runtime/sqlite.ts';
import { type ContainerEngine, LABELS } from '../engine/engine.ts';
import { createBuildService } from './build.service.ts';
import { createBuildLogs } from './build-log.ts';
import { createImageService } from './image.service.ts';
import { createImageStore } from './image.store.ts';
import { createImageGc } from './image-gc.job.ts';
import { createPodImages } from './pod-images.ts';
import { createRegistryAuthStore } from './registry-auth.store.ts';
import { createRegistryLogins } from './registry-logins.ts';

export type ImageCorePorts = {
  executorId: string;
  engine: ContainerEngine;
  database: DatabaseSync;
  clock: Clock;
  random: Random;
  log: Log;
  secret: Uint8Array;
  busyboxPath: string;
  buildsFolder: string;
  networkOf(podId: string): Promise<string>;
} & Pick<
  Parameters<typeof createImageGc>[0],
  'diskPercent' | 'marks' | 'usedByPods' | 'buildKeysOfPods' | 'onRemoved'
>;

export type ImageCore = ReturnType<typeof createImageCore>;

export function createImageCore(ports: ImageCorePorts) {
  const { database, clock } = ports;
  const store = createImageStore(database);
  const logins = createRegistryLogins({ ...ports, store: createRegistryAuthStore(database) });
  const images = createImageService({ ...ports, store, logins });
  const logs = createBuildLogs({ folder: ports.buildsFolder, clock });
  const builds = createBuildService({ ...ports, images, store, logs, logins });
  const podImages = createPodImages({ images, builds, logins });
  const gc = createImageGc({ ...ports, store, builds, logs, labels: ownLabels(ports.executorId) });
  return { store, logins, images, logs, builds, podImages, gc };
}

function ownLabels(executorId: string): Record<string, string> {
  return { [LABELS.managed]: '1', [LABELS.executor]: executorId };
}
