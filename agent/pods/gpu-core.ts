/** Everything about the GPUs of pods, put together: leases, health, the looks from inside, and their periodic work. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { DatabaseSync } from '#shared/runtime/sqlite.ts';
import type { ContainerEngine } from '../containers/engine/engine.ts';
import { createGpuCordons } from '../gpu/cordons.ts';
import { createPlaceOf, type NumaNode } from '../gpu/cpu-placement.ts';
import type { GpuDriver } from '../gpu/gpu-driver.ts';
import {
  createGpuHealthJob,
  GPU_HEALTH_INTERVAL_MS,
  KERNEL_LOG_INTERVAL_MS,
} from '../gpu/gpu-health.job.ts';
import { createGpuHealthStore } from '../gpu/gpu-health.store.ts';
import {
  createGpuLeases,
  createGpuShare,
  GPU_LEASE_INTERVAL_MS,
  type GpuShareRule,
  type GpuSource,
} from '../gpu/gpu-lease.ts';
import type { KernelLog } from '../gpu/kernel-log.ts';
import { countXids } from '../gpu/xid.ts';
import type { LeaseStore } from '../leases/lease.store.ts';
import type { PeriodicWork } from '../periodic-work.ts';
import { createGpuProbe, GPU_PROBE_INTERVAL_MS, type RunInContainer } from './gpu-probe.job.ts';
import { createGpuWatch, GPU_WATCH_INTERVAL_MS } from './gpu-watch.job.ts';
import type { PodRecords } from './pod.records.ts';

/** What a host gives of its GPUs. */
export type GpuPorts = {
  gpus: GpuSource;
  gpuDriver: GpuDriver;
  /** What the provider allows to be rented. */
  gpuShare: GpuShareRule;
  kernelLog: KernelLog;
  numaNodes(): Promise<NumaNode[]>;
  /** For the look from inside at a pod's GPUs. */
  runInContainer: RunInContainer;
};

/** Nothing runs until somebody runs the `work`. */
export function createGpuCore(
  ports: GpuPorts & {
    executorId: string;
    clock: Clock;
    log: Log;
    database: DatabaseSync;
    engine: ContainerEngine;
    leases: LeaseStore;
    records: PodRecords;
    host: { bootMs: number; bootId: string };
  },
) {
  const { executorId, clock, log, database, engine, leases, records, host } = ports;
  const { gpus, gpuDriver: driver, kernelLog, runInContainer } = ports;
  const store = createGpuHealthStore(database);
  const gpuCordons = createGpuCordons(store);
  const share = createGpuShare(ports.gpuShare);
  const gpuLeases = createGpuLeases({ leases, gpus, cordons: gpuCordons, share, clock });
  const gpuHealth = createGpuHealthJob({
    ...{ driver, database, clock, log, store, kernelLog },
    bootId: host.bootId,
    bootMs: () => host.bootMs,
    leasedUuids: gpuLeases.leasedUuids,
    holderOf: gpuLeases.holderOf,
    onReboot: gpuLeases.dropDirty,
  });
  const gpuProbe = createGpuProbe({ records, driver, runInContainer, clock, log });
  const watched = { executorId, engine, records, driver, gpuLeases, clock, store };
  const gpuWatch = createGpuWatch({ ...watched, probe: gpuProbe });

  /** Real cards break, wedge and get lost; each of these asks nvidia-smi, the kernel or the engine alone. */
  const ofRealCards: PeriodicWork[] = [
    { name: 'gpu health', intervalMs: GPU_HEALTH_INTERVAL_MS, run: () => gpuHealth.runOnce() },
    {
      name: 'kernel log',
      intervalMs: KERNEL_LOG_INTERVAL_MS,
      run: async () => gpuHealth.readKernelLog(),
    },
    { name: 'gpu watch', intervalMs: GPU_WATCH_INTERVAL_MS, run: () => gpuWatch.runOnce() },
    { name: 'gpu probe', intervalMs: GPU_PROBE_INTERVAL_MS, run: () => gpuProbe.runOnce() },
  ];
  const gpuWork: PeriodicWork[] = [
    { name: 'gpu leases', intervalMs: GPU_LEASE_INTERVAL_MS, run: () => gpuLeases.recheckDirty() },
    ...(driver.kind === 'nvidia' ? ofRealCards : []),
  ];

  return {
    /** What the kernel's log told of, by card and code. */
    gpuXids: () => {
      const cards = store.cards();
      const rows = cards.flatMap(({ pci }) => store.xids(pci, 0, Number.MAX_SAFE_INTEGER));
      return countXids(rows, cards);
    },
    gpuLeases,
    gpuCordons,
    gpuHealth,
    gpuProbe,
    gpuWatch,
    gpuWork,
    placeOf: createPlaceOf(driver, ports.numaNodes),
  };
}
