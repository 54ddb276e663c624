/**
 * Composes the periodic checks of pods: disk limits, volumes, GPUs that are visible inside the pod, orphaned objects.
 */
import type { Orphan } from '#shared/api/agent/inventory.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Containers } from '../containers/containers.ts';
import type { ContainerEngine } from '../containers/engine/engine.ts';
import { type GpuDriver, mayBeNvidia } from '../gpu/gpu-driver.ts';
import type { Gpus } from '../gpu/gpus.ts';
import type { PeriodicWork } from '../periodic-work.ts';
import { createDiskQuotaProbe, createDiskStop, type DiskSpace } from './disk-limit.ts';
import { createDiskWatch, DISK_INTERVAL_MS } from './disk-watch.job.ts';
import type { FolderBytes, FolderEntries } from './folder-size.ts';
import { createGpuProbe, GPU_PROBE_INTERVAL_MS, type RunInContainer } from './gpu-probe.job.ts';
import { createGpuWatch, GPU_WATCH_INTERVAL_MS } from './gpu-watch.job.ts';
import { createOrphanSweep, ORPHANS_INTERVAL_MS } from './orphans.job.ts';
import type { PodRecords } from './pod-records.ts';
import { createVolumeWatch, VOLUME_WATCH_INTERVAL_MS } from './volume-watch.job.ts';

export type WatchesPorts = {
  executorId: string;
  clock: Clock;
  random: Random;
  log: Log;
  engine: ContainerEngine;
  gpuDriver: GpuDriver;
  folderBytes: FolderBytes;
  folderEntries: FolderEntries;
  diskSpace(): Promise<DiskSpace>;
  /** Runs a program inside a pod, to list the GPUs that are visible in it. */
  runInContainer: RunInContainer;
  /** Called after every sweep with the number of objects in the engine that belong to no pod, by kind. */
  onOrphans(counts: Record<Orphan['kind'], number>): void;
};

export type Watches = ReturnType<typeof createWatches>;

/** Starts no loops: the caller runs the returned `work`. */
export function createWatches(
  ports: WatchesPorts,
  deps: { records: PodRecords; containers: Containers; gpus: Gpus },
) {
  const { executorId, clock, random, log, engine, gpuDriver: driver } = ports;
  const { folderBytes, folderEntries, runInContainer } = ports;
  const { records, containers, gpus } = deps;
  const { ensureBuiltinImage } = containers;
  const diskQuota = createDiskQuotaProbe({ engine, executorId, random, ensureBuiltinImage });
  const diskStop = createDiskStop({ engine, records });
  const diskWatch = createDiskWatch({
    engine,
    records,
    quota: diskQuota,
    volumes: containers.podVolumes,
    folderBytes,
    folderEntries,
    diskSpace: ports.diskSpace,
    diskStop,
    clock,
    log,
  });
  const volumeWatch = createVolumeWatch({
    volumes: containers.persistentVolumes,
    records,
    folderBytes,
    folderEntries,
    diskStop,
    clock,
    log,
  });
  const gpuProbe = createGpuProbe({ records, driver, runInContainer, clock, log });
  const gpuWatch = createGpuWatch({
    executorId,
    engine,
    records,
    driver,
    gpuLeases: gpus.gpuLeases,
    clock,
    store: gpus.gpuHealthStore,
    probe: gpuProbe,
  });
  const orphans = createOrphanSweep({
    executorId,
    engine,
    records,
    clock,
    log,
    onSwept: ports.onOrphans,
  });
  const gpuWork: PeriodicWork[] = [
    { name: 'gpu watch', intervalMs: GPU_WATCH_INTERVAL_MS, run: () => gpuWatch.runOnce() },
    { name: 'gpu probe', intervalMs: GPU_PROBE_INTERVAL_MS, run: () => gpuProbe.runOnce() },
  ];
  const work: PeriodicWork[] = [
    { name: 'orphans', intervalMs: ORPHANS_INTERVAL_MS, run: () => orphans.runOnce() },
    { name: 'disk watch', intervalMs: DISK_INTERVAL_MS, run: () => diskWatch.poll() },
    {
      name: 'volume watch',
      intervalMs: VOLUME_WATCH_INTERVAL_MS,
      run: () => volumeWatch.runOnce(),
    },
    ...(mayBeNvidia(driver) ? gpuWork : []),
  ];
  return { diskQuota, diskWatch, volumeWatch, gpuProbe, gpuWatch, orphans, work };
}
