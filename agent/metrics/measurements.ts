/** What is measured of the host and its pods, put together: samples, and the metrics made of them. */
import { SAMPLE_INTERVAL_MS } from '#shared/api/agent/metrics.ts';
import type { UpdateStatus } from '#shared/api/agent/update-status.ts';
import type { AgentPorts } from '../agent-ports.ts';
import type { Listeners } from '../listeners.ts';
import type { PeriodicWork } from '../periodic-work.ts';
import type { PodCore } from '../pod-core.ts';
import { createMetricsJob } from './metrics.job.ts';
import { registerMetricsRoutes } from './metrics.routes.ts';
import { registerSampleRoutes } from './sample.routes.ts';
import { createSamples } from './samples.ts';
import { createFileUsage } from './usage/file-usage.ts';
import { createKernelFiles } from './usage/kernel-files.ts';
import { createPodUsage } from './usage/pod-usage.ts';

/** What other parts of the agent know. */
type Known = { logFollowers(): number; updateStatus(): UpdateStatus };

/** Nothing is measured before its work runs. */
export function createMeasuring(ports: AgentPorts, core: PodCore, known: Known) {
  const { clock, metrics, portRange } = ports;
  const { records, leases, operations } = core;
  const files = createFileUsage(createKernelFiles());
  const samples = createSamples({
    ...ports,
    records,
    podUsage: createPodUsage({ ...ports, files }),
  });
  const metricsJob = createMetricsJob({
    ...{ ...ports, records, leases, samples, operations },
    xids: core.gpuXids,
    cordonedUuids: () =>
      (samples.gpus()?.reading.devices ?? [])
        .filter((device) => core.gpuCordons.of(device) !== null)
        .map(({ uuid }) => uuid),
    writtenBytes: core.diskWatch.bytesOf,
    pullOf: core.pulls.presentOf,
    standing: () => ({
      ports: { size: portRange.last - portRange.first + 1, free: core.portLeases.freeCount() },
      logSubscribers: known.logFollowers(),
      ssh: ports.gatewayLink.traffic(),
      diskQuota: core.diskQuota.found(),
      simulated: ports.gpuDriver.kind === 'simulated',
      firewallEnforced: core.firewall.enforced(),
      updateState: known.updateStatus().state,
    }),
  });
  const work: PeriodicWork[] = [
    { name: 'metrics', intervalMs: SAMPLE_INTERVAL_MS, run: () => metricsJob.runOnce() },
  ];

  return {
    samples,
    metricsJob,
    work,

    register({ server, monitoring }: Listeners): void {
      registerSampleRoutes(server, { samples });
      registerMetricsRoutes(monitoring ?? server, { clock, metrics, isOwn: monitoring !== null });
    },
  };
}
