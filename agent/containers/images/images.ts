/** Composes the handling of images: pulls, builds, registry logins, garbage collection. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { ClockTrust } from '#shared/runtime/guarded-clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { DatabaseSync } from '#shared/runtime/sqlite.ts';
import type { ContainerEngine } from '../engine/engine.ts';
import { executorLabels } from '../engine/labels.ts';
import { createBuildService } from './build.service.ts';
import { createBuildLogs } from './build-log.ts';
import { createImageService } from './image.service.ts';
import { createImageStore } from './image.store.ts';
import { createImageGc, type DiskMarks } from './image-gc.job.ts';
import { createPodImages } from './pod-images.ts';
import { createRegistryAuthStore, createRegistryLogins } from './registry-logins.ts';

export type ImagesPorts = {
  executorId: string;
  engine: ContainerEngine;
  database: DatabaseSync;
  clock: Clock;
  trust: Pick<ClockTrust, 'isSuspect'>;
  random: Random;
  log: Log;
  secret: Uint8Array;
  busyboxPath: string;
  buildsFolder: string;
  /** Creates the pod's network if it is missing and returns its name. */
  networkOf(podId: string): Promise<string>;
  /** Ids and names of the images that pods have or are about to need. */
  usedByPods(): string[];
  /** Keys of the builds whose logs pods still show. */
  buildKeysOfPods(): string[];
  diskPercent(): Promise<number>;
  marks: DiskMarks;
  onRemoved(bytes: number): void;
};

export type Images = ReturnType<typeof createImages>;

export function createImages(ports: ImagesPorts) {
  const { database, clock } = ports;
  const store = createImageStore(database);
  const logins = createRegistryLogins({ ...ports, store: createRegistryAuthStore(database) });
  const images = createImageService({ ...ports, store, logins });
  const logs = createBuildLogs({ folder: ports.buildsFolder, clock });
  const builds = createBuildService({ ...ports, images, store, logs, logins });
  const podImages = createPodImages({ images, builds, logins });
  const gc = createImageGc({
    ...ports,
    store,
    builds,
    logs,
    labels: executorLabels(ports.executorId),
  });
  return { store, logins, images, logs, builds, podImages, gc };
}
