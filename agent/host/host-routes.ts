/** What the host has and how it is, put together: inventory, health, readiness. */
import type { UpdateStatus } from '#shared/api/agent/update-status.ts';
import { countOutside, PROC } from '../access/exec/container-process.ts';
import type { AgentPorts } from '../agent-ports.ts';
import type { GpuDriver } from '../gpu/gpu-driver.ts';
import type { Listeners } from '../listeners.ts';
import type { PodCore } from '../pod-core.ts';
import { registerInventoryRoutes } from './inventory.routes.ts';
import { createInventoryService } from './inventory.service.ts';
import { createReadiness } from './readiness.ts';
import { registerSystemRoutes } from './system.routes.ts';

/** What is found out elsewhere of the host. */
type HostKnowledge = { gpuRuntimeTried(): boolean | null; updateStatus(): UpdateStatus };

/** The inventory is for those who may ask, the rest for everybody on either listener. */
export function registerHostView(
  { server, monitoring }: Listeners,
  ports: AgentPorts,
  core: PodCore,
  known: HostKnowledge,
): void {
  registerInventoryRoutes(server, { inventory: inventoryOf(ports, core, known) });
  const system = {
    executorId: ports.executorId,
    startedMs: ports.clock.now(),
    simulated: ports.gpuDriver.kind === 'simulated',
    updateStatus: known.updateStatus,
    readiness: readinessOf(ports, core),
  };
  registerSystemRoutes(server, system);
  if (monitoring !== null) registerSystemRoutes(monitoring, system);
}

function inventoryOf(
  ports: AgentPorts,
  { gpuLeases, gpuCordons, portLeases, records, firewall, diskQuota, orphans }: PodCore,
  known: HostKnowledge,
) {
  const { clock, executorId, engine, gpuDriver, metrics } = ports;
  return createInventoryService({
    ...{ clock, executorId, engine, gpu: gpuDriver },
    host: ports.hostProbe,
    hostSources: ports.hostSources,
    gpuStanding: (device, pids) => {
      const holder = gpuLeases.holderOf(device.uuid);
      return {
        leased_by: holder,
        lease_state: gpuLeases.stateOf(device.uuid),
        cordoned: gpuCordons.shown(device),
        outside_processes: countOutside(PROC, {
          pids,
          containerId: holder === null ? null : (records.get(holder)?.container_id ?? null),
        }),
      };
    },
    ports: () => ({ ...ports.portRange, free: portLeases.freeCount() }),
    isolation: () => ({
      firewall: firewall.enforced() ? 'enforced' : 'unavailable',
      disk_quota: diskQuota.found(),
    }),
    orphans: orphans.list,
    gpuRuntimeTried: known.gpuRuntimeTried,
    updateStatus: known.updateStatus,
    onCollected: metrics.collected,
  });
}

function readinessOf(
  { clock, engine, gpuDriver }: AgentPorts,
  { records, firewall, orphans }: PodCore,
) {
  return createReadiness(clock, {
    docker: { required: true, check: () => engine.ping().then(() => 'answers') },
    database: { required: true, check: async () => `${records.list().length} pods` },
    firewall: { required: firewall.required, check: () => firewall.describe() },
    gpu: { required: false, check: () => describeGpus(gpuDriver) },
    pods: {
      required: false,
      check: async () => describeOddities(records, orphans.list().length),
    },
  });
}

/** A few words for /readyz; throws when something is there that only a person or a signed removal can settle. */
function describeOddities(records: PodCore['records'], orphans: number): string {
  let corrupt = 0;
  records.list(() => {
    corrupt += 1;
  });
  if (corrupt + orphans === 0) return 'all accounted for';
  throw new Error(`${corrupt} corrupt rows, ${orphans} objects in the engine without a pod`);
}

/** A few words for /readyz; throws when the GPUs cannot be read. */
async function describeGpus(driver: GpuDriver): Promise<string> {
  const { devices, error } = await driver.read();
  if (error !== null) throw new Error(error);
  return `${devices.length} ${driver.kind}`;
}
