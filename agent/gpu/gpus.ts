/** Composes the GPU module: leases, health, cordons and placement. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { DatabaseSync } from '#shared/runtime/sqlite.ts';
import type { LeaseStore } from '../leases/lease.store.ts';
import type { PeriodicWork } from '../periodic-work.ts';
import { GPU_DETECTION_INTERVAL_MS } from './choose-gpu-driver.ts';
import { createGpuCordons } from './cordons.ts';
import { createPlaceOf, type NumaNode } from './cpu-placement.ts';
import { type GpuDriver, mayBeNvidia } from './gpu-driver.ts';
import {
  createGpuHealthJob,
  GPU_HEALTH_INTERVAL_MS,
  KERNEL_LOG_INTERVAL_MS,
} from './gpu-health.job.ts';
import { createGpuHealthStore } from './gpu-health.store.ts';
import {
  createGpuLeases,
  createGpuShare,
  GPU_LEASE_INTERVAL_MS,
  type GpuShareRule,
  type GpuSource,
} from './gpu-lease.ts';
import type { KernelLog } from './kernel-log.ts';
import { countXids } from './xid.ts';

export type GpusPorts = {
  clock: Clock;
  log: Log;
  database: DatabaseSync;
  gpus: GpuSource;
  gpuDriver: GpuDriver;
  /** Rule for the number of GPUs that one pod may rent. */
  gpuShare: GpuShareRule;
  kernelLog: KernelLog;
  numaNodes(): Promise<NumaNode[]>;
  host: { bootMs: number; bootId: string };
};

export type Gpus = ReturnType<typeof createGpus>;

/** Starts nothing: the caller runs `work`. */
export function createGpus(ports: GpusPorts, leases: LeaseStore) {
  const { clock, log, database, gpus, gpuDriver: driver, kernelLog, host } = ports;
  const store = createGpuHealthStore(database);
  const gpuCordons = createGpuCordons(store);
  const share = createGpuShare(ports.gpuShare);
  const gpuLeases = createGpuLeases({ leases, gpus, cordons: gpuCordons, share, clock });
  const gpuHealth = createGpuHealthJob({
    driver,
    database,
    clock,
    log,
    store,
    kernelLog,
    bootId: host.bootId,
    bootMs: () => host.bootMs,
    leasedUuids: gpuLeases.leasedUuids,
    holderOf: gpuLeases.holderOf,
    onReboot: gpuLeases.dropDirty,
  });
  const isNvidia = () => driver.kind === 'nvidia';
  const healthWork: PeriodicWork[] = [
    {
      name: 'gpu health',
      intervalMs: GPU_HEALTH_INTERVAL_MS,
      run: async () => isNvidia() && gpuHealth.runOnce(),
    },
    {
      name: 'kernel log',
      intervalMs: KERNEL_LOG_INTERVAL_MS,
      run: async () => isNvidia() && gpuHealth.readKernelLog(),
    },
  ];
  /** The driver may be loaded after the agent has started. The new cards are usable from the next reading on. */
  async function detect(): Promise<void> {
    if (isNvidia()) return;
    await driver.detect?.();
    if (isNvidia()) log.info('the NVIDIA driver is loaded now: its GPUs are offered');
  }
  const detection: PeriodicWork = {
    name: 'gpu detection',
    intervalMs: GPU_DETECTION_INTERVAL_MS,
    run: detect,
  };
  const work: PeriodicWork[] = [
    { name: 'gpu leases', intervalMs: GPU_LEASE_INTERVAL_MS, run: () => gpuLeases.recheckDirty() },
    ...(mayBeNvidia(driver) ? healthWork : []),
    ...(driver.detect === undefined ? [] : [detection]),
  ];

  return {
    /** Xid errors from the kernel log, by card and code. */
    gpuXids: () => {
      const cards = store.cards();
      const rows = cards.flatMap(({ pci }) => store.xids(pci, 0, Number.MAX_SAFE_INTEGER));
      return countXids(rows, cards);
    },
    gpuHealthStore: store,
    gpuLeases,
    gpuCordons,
    gpuHealth,
    gpuMode: gpus.gpuMode,
    placeOf: createPlaceOf(driver, ports.numaNodes),
    work,
  };
}
