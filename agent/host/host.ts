/** Composes what the agent reports about its host: inventory, health and readiness. */
import type { UpdateStatus } from '#shared/api/agent/update-status.ts';
import { clockProbe, createReadiness } from '#shared/api/readiness.ts';
import type { HttpServer } from '#shared/http/server.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { GuardedClock } from '#shared/runtime/guarded-clock.ts';
import { countOutside, PROC, withNames } from '../access/exec/container-process.ts';
import type { ContainerEngine } from '../containers/engine/engine.ts';
import type { FirewallGuard } from '../containers/network/firewall.ts';
import type { GpuDriver } from '../gpu/gpu-driver.ts';
import type { Gpus } from '../gpu/gpus.ts';
import type { PortRange, PortService } from '../leases/port.service.ts';
import type { PodRecords } from '../pods/pod-records.ts';
import type { Pods } from '../pods/pods.ts';
import { registerInventoryRoutes, registerSystemRoutes } from './host.routes.ts';
import type { HostProbe } from './host-probe.ts';
import type { ReadHostSources } from './host-sources.ts';
import { createInventoryService } from './inventory.service.ts';

export type HostPorts = {
  executorId: string;
  clock: Clock;
  engine: ContainerEngine;
  gpuDriver: GpuDriver;
  portRange: PortRange;
  hostProbe: HostProbe;
  hostSources: ReadHostSources;
  trust: Pick<GuardedClock, 'status'>;
  host: { sharePercent: number; gpuMonitors: readonly string[] };
};

type Parts = {
  pods: Pods;
  gpus: Gpus;
  firewall: FirewallGuard;
  portLeases: PortService;
  /** Result of the last GPU test in a container; null before the first one. */
  gpuRuntimeTried(): boolean | null;
  updateStatus(): UpdateStatus;
};

/** Registers the inventory for signed requests, and the public system routes on both listeners. */
export function registerHostRoutes(
  { server, monitoring }: { server: HttpServer; monitoring: HttpServer | null },
  ports: HostPorts,
  parts: Parts,
): void {
  registerInventoryRoutes(server, { inventory: inventoryOf(ports, parts) });
  const system = {
    executorId: ports.executorId,
    startedMs: ports.clock.now(),
    simulated: ports.gpuDriver.kind === 'simulated',
    updateStatus: parts.updateStatus,
    readiness: readinessOf(ports, parts),
  };
  registerSystemRoutes(server, system);
  if (monitoring !== null) registerSystemRoutes(monitoring, system);
}

function inventoryOf(ports: HostPorts, parts: Parts) {
  const { pods, gpus, firewall, portLeases } = parts;
  return createInventoryService({
    clock: ports.clock,
    executorId: ports.executorId,
    engine: ports.engine,
    gpu: ports.gpuDriver,
    host: ports.hostProbe,
    sharePercent: ports.host.sharePercent,
    hostSources: ports.hostSources,
    availabilityOf: (device, pids) => {
      const holder = gpus.gpuLeases.holderOf(device.uuid);
      const containerId = holder === null ? null : (pods.records.get(holder)?.container_id ?? null);
      const declared = pids === null ? null : withNames(PROC, pids, ports.host.gpuMonitors);
      return {
        leased_by: holder,
        lease_state: gpus.gpuLeases.stateOf(device.uuid),
        cordoned: gpus.gpuCordons.viewOf(device),
        outside_processes: countOutside(PROC, { pids, containerId }),
        declared_processes: countOutside(PROC, { pids: declared, containerId }),
      };
    },
    ports: () => ({ ...ports.portRange, free: portLeases.freeCount() }),
    isolation: () => ({
      firewall: firewall.enforced() ? 'enforced' : 'unavailable',
      disk_quota: pods.diskQuota.found(),
    }),
    orphans: pods.orphans.list,
    gpuRuntimeTried: parts.gpuRuntimeTried,
    updateStatus: parts.updateStatus,
  });
}

function readinessOf(
  { clock, engine, gpuDriver, trust }: HostPorts,
  { pods: { records, orphans, rebuild }, firewall }: Parts,
) {
  return createReadiness(clock, {
    docker: { required: true, check: () => engine.ping().then(() => 'answers') },
    database: { required: true, check: async () => `${records.list().length} pods` },
    store: { required: true, check: rebuild.describe },
    firewall: { required: firewall.required, check: () => firewall.describe() },
    gpu: { required: false, check: () => describeGpus(gpuDriver) },
    clock: clockProbe(trust),
    pods: {
      required: false,
      check: async () => describePods(records, orphans.list().length),
    },
  });
}

/**
 * Text for /readyz. Throws if there are corrupt rows or orphans, which only the operator or a signed removal can
 * resolve.
 */
function describePods(records: PodRecords, orphans: number): string {
  let corrupt = 0;
  records.list(() => {
    corrupt += 1;
  });
  if (corrupt + orphans === 0) return 'all accounted for';
  throw new Error(`${corrupt} corrupt rows, ${orphans} objects in the engine without a pod`);
}

/** Text for /readyz. Throws if the GPUs cannot be read. */
async function describeGpus(driver: GpuDriver): Promise<string> {
  const { devices, error } = await driver.read();
  if (error !== null) throw new Error(error);
  return `${devices.length} ${driver.kind}`;
}
