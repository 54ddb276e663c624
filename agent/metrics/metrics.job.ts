/** Brings the gauges of pods and GPU leases up to date, apart from the reconcile: a driver that hangs must not hold that up. */
import type { UpdateState } from '#shared/agent-api/update-status.ts';
import type { PodRecords } from '../pods/pod.records.ts';
import type { LeaseStore } from '../store/lease.store.ts';
import type { GpuLeaseState, Metrics } from './metrics.ts';
import type { Samples } from './samples.ts';

export type MetricsJobPorts = {
  metrics: Metrics;
  records: PodRecords;
  leases: LeaseStore;
  samples: Pick<Samples, 'runOnce' | 'devices'>;
  updateState(): UpdateState;
};

/** One sample of everything, and then what the gauges have of it. */
export function createMetricsJob(ports: MetricsJobPorts) {
  const { metrics, records, leases, samples } = ports;
  return {
    async runOnce(): Promise<void> {
      metrics.setPods(records.list().map((row) => row.phase));
      metrics.setUpdateState(ports.updateState());
      await samples.runOnce();
      metrics.setGpuLeases(leaseStates(samples.devices(), leases));
    },
  };
}

function leaseStates(devices: readonly { uuid: string }[], leases: LeaseStore): GpuLeaseState[] {
  const states = new Map(leases.list('gpu').map((lease) => [lease.key, lease.state]));
  // A card that fell off the bus is still held, or dirty.
  const uuids = new Set([...devices.map(({ uuid }) => uuid), ...states.keys()]);
  return [...uuids].map((uuid) => {
    const state = states.get(uuid);
    return { uuid, state: state === 'held' || state === 'dirty' ? state : 'free' };
  });
}
