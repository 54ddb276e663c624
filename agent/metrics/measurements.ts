/** Composes the measurements of the host and its pods: samples, and the metrics that export the samples. */
import type { UpdateStatus } from '#shared/api/agent/update-status.ts';
import type { HttpServer } from '#shared/http/server.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { GatewayLink } from '../access/ssh/gateway-link.ts';
import type { OperationStore } from '../backups/operation.store.ts';
import type { ContainerEngine } from '../containers/engine/engine.ts';
import type { GpuCordons } from '../gpu/cordons.ts';
import type { CountedXid } from '../gpu/xid.ts';
import type { LeaseStore } from '../leases/lease.store.ts';
import type { PortRange } from '../leases/port.service.ts';
import type { PeriodicWork } from '../periodic-work.ts';
import type { PodRecords } from '../pods/pod-records.ts';
import { createMetricsJob, type MetricsJobPorts } from './metrics.job.ts';
import { registerMetricsRoutes, registerSampleRoutes } from './metrics.routes.ts';
import type { Metrics } from './metrics.ts';
import { createSampleHistory, pauseToNextTick } from './sample-history.ts';
import { createSamples, type SamplesPorts } from './samples.ts';
import { createFileUsage, createKernelFiles } from './usage/kernel-usage.ts';
import { createPodUsage } from './usage/pod-usage.ts';

export type MeasurementPorts = Omit<SamplesPorts, 'records' | 'podUsage' | 'onCollected'> &
  Pick<MetricsJobPorts, 'gpuMetrics' | 'hostname'> & {
    engine: ContainerEngine;
    gatewayLink: GatewayLink;
    metrics: Metrics;
    random: Random;
    portRange: PortRange;
  };

/** The parts of the pods module that are measured. */
export type MeasuredPods = {
  records: PodRecords;
  leases: LeaseStore;
  operations: OperationStore;
  gpuCordons: GpuCordons;
  gpuXids(): CountedXid[];
  portLeases: { freeCount(): number };
  diskWatch: { bytesOf: MetricsJobPorts['writtenBytes'] };
  pulls: { presentOf: MetricsJobPorts['pullOf'] };
  diskQuota: { found(): string };
  firewall: { enforced(): boolean };
};

/** State of other modules that metrics show. */
export type OtherState = { logFollowers(): number; updateStatus(): UpdateStatus };

/** Measures nothing before `work` runs. */
export function createMeasurements(ports: MeasurementPorts, pods: MeasuredPods, other: OtherState) {
  const { clock, metrics, portRange } = ports;
  const { records, leases, operations } = pods;
  const files = createFileUsage(createKernelFiles());
  const samples = createSamples({
    ...ports,
    records,
    podUsage: createPodUsage({ ...ports, files }),
    onCollected: metrics.collected,
  });
  const metricsJob = createMetricsJob({
    ...ports,
    records,
    leases,
    samples,
    operations,
    xids: pods.gpuXids,
    cordonedUuids: () =>
      (samples.gpus()?.reading.devices ?? [])
        .filter((device) => pods.gpuCordons.of(device) !== null)
        .map(({ uuid }) => uuid),
    writtenBytes: pods.diskWatch.bytesOf,
    pullOf: pods.pulls.presentOf,
    currentState: () => ({
      ports: { size: portRange.last - portRange.first + 1, free: pods.portLeases.freeCount() },
      logSubscribers: other.logFollowers(),
      ssh: ports.gatewayLink.traffic(),
      diskQuota: pods.diskQuota.found(),
      simulated: ports.gpuDriver.kind === 'simulated',
      firewallEnforced: pods.firewall.enforced(),
      updateState: other.updateStatus().state,
    }),
  });
  const history = createSampleHistory({
    clock,
    epoch: ports.random.uuid(),
    samples,
    records,
    writtenBytes: pods.diskWatch.bytesOf,
  });
  const work: PeriodicWork[] = [
    {
      name: 'metrics',
      intervalMs: () => pauseToNextTick(clock.monotonicMs()),
      async run() {
        await metricsJob.runOnce();
        history.record();
      },
    },
  ];

  return {
    samples,
    history,
    metricsJob,
    work,

    /** `monitoring` is the provider's separate listener; null if there is none. */
    register({ server, monitoring }: { server: HttpServer; monitoring: HttpServer | null }): void {
      registerSampleRoutes(server, { samples, history });
      registerMetricsRoutes(monitoring ?? server, {
        clock,
        metrics,
        isSeparate: monitoring !== null,
      });
    },
  };
}
