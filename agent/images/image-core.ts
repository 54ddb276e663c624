/** Everything about images put together: fetching, building, logins, and what is on the disk. */
import type { Clock } from '#shared/clock.ts';
import type { Log } from '#shared/log.ts';
import type { Random } from '#shared/random.ts';
import type { DatabaseSync } from '#shared/sqlite.ts';
import { type ContainerEngine, LABELS } from '../docker/engine.ts';
import { createImageStore } from '../store/image.store.ts';
import { createRegistryAuthStore } from '../store/registry-auth.store.ts';
import { createBuildService } from './build.service.ts';
import { createBuildLogs } from './build-log.ts';
import { createImageService } from './image.service.ts';
import { createImageGc } from './image-gc.job.ts';
import { createPodImages } from './pod-images.ts';
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
