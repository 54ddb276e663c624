/** Brings the gauges of pods and GPU leases up to date, apart from the reconcile: a driver that hangs must not hold that up. */
import type { GpuDriver } from '../gpu/gpu-driver.ts';
import type { PodRecords } from '../pods/pod.records.ts';
import type { LeaseStore } from '../store/lease.store.ts';
import type { GpuLeaseState, Metrics } from './metrics.ts';

export const METRICS_INTERVAL_MS = 10_000;

export type MetricsJobPorts = {
  metrics: Metrics;
  records: PodRecords;
  leases: LeaseStore;
  gpuDriver: GpuDriver;
};

export function createMetricsJob({ metrics, records, leases, gpuDriver }: MetricsJobPorts) {
  return {
    async runOnce(): Promise<void> {
      metrics.setPods(records.list().map((row) => row.phase));
      metrics.setGpuLeases(await leaseStates(gpuDriver, leases));
    },
  };
}

async function leaseStates(driver: GpuDriver, leases: LeaseStore): Promise<GpuLeaseState[]> {
  const states = new Map(leases.list('gpu').map((lease) => [lease.key, lease.state]));
  const { devices } = await driver.read();
  // A card that fell off the bus is still held, or dirty.
  const uuids = new Set([...devices.map(({ uuid }) => uuid), ...states.keys()]);
  return [...uuids].map((uuid) => {
    const state = states.get(uuid);
    return { uuid, state: state === 'held' || state === 'dirty' ? state : 'free' };
  });
}
