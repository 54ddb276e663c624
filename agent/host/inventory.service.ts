/** The host's inventory, collected at most every two seconds. */
import type { Inventory } from '#shared/api/agent/inventory.ts';
import type { UpdateStatus } from '#shared/api/agent/update-status.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { VERSION } from '#shared/runtime/version.ts';
import type { ContainerEngine, EngineInfo } from '../containers/engine/engine.ts';
import type { GpuDriver } from '../gpu/gpu-driver.ts';
import { type AvailabilityOf, gpuInventory } from '../gpu/gpu-inventory.ts';
import type { HostProbe } from './host-probe.ts';
import { sharedFacts } from './host-share.ts';
import type { ReadHostSources } from './host-sources.ts';

export type InventoryService = ReturnType<typeof createInventoryService>;

export type InventoryServiceOptions = {
  clock: Clock;
  executorId: string;
  engine: Pick<ContainerEngine, 'info'>;
  gpu: GpuDriver;
  host: Pick<HostProbe, 'read'>;
  /** Percent of the host's memory and cores that this agent offers. */
  sharePercent: number;
  /** Values with which a validator compares the inventory. */
  hostSources: ReadHostSources;
  /** Lease, cordon and processes of a GPU. */
  availabilityOf: AvailabilityOf;
  /** Range of host ports for pods, and number of free ones. */
  ports(): Inventory['ports'];
  /** Isolation of pods except seccomp, which the engine reports. */
  isolation(): Omit<Inventory['isolation'], 'seccomp'>;
  /** Objects in the engine without a pod. */
  orphans(): readonly Inventory['orphans'][number][];
  /** Result of the last GPU test in a container; null before the first. */
  gpuRuntimeTried(): boolean | null;
  updateStatus(): UpdateStatus;
};

const CACHE_MS = 2_000;

export function createInventoryService(options: InventoryServiceOptions) {
  const { clock } = options;
  let cached: { atMs: number; inventory: Promise<Inventory> } | null = null;
  let lastEngineInfo: EngineInfo | null = null;

  async function engineInfo(): Promise<EngineInfo> {
    try {
      lastEngineInfo = await options.engine.info();
    } catch (error) {
      // The last facts are still valid while the engine does not answer. /readyz reports that it does not answer.
      if (lastEngineInfo === null) throw unavailable('The container engine', error);
    }
    return lastEngineInfo;
  }

  async function collect(): Promise<Inventory> {
    const [docker, reading] = await Promise.all([engineInfo(), options.gpu.read()]);
    const host = await options.host.read(docker.rootDir).catch((error: unknown) => {
      throw unavailable('The host', error);
    });
    const sources = await options.hostSources(docker.rootDir);
    return {
      executor_id: options.executorId,
      agent_version: VERSION,
      collected_ms: clock.now(),
      simulated: options.gpu.kind === 'simulated',
      gpu: gpuInventory(options.gpu.kind, reading, options.availabilityOf),
      ...sharedFacts(host, options.sharePercent),
      docker: {
        version: docker.version,
        storage_driver: docker.storageDriver,
        cgroup_version: docker.cgroupVersion,
        // A test in a container is more reliable than the engine's list of runtimes, which does not show hooks and CDI.
        gpu_runtime: options.gpuRuntimeTried() ?? docker.runtimes.includes('nvidia'),
        sysbox_runtime: docker.runtimes.includes('sysbox-runc'),
      },
      isolation: { ...options.isolation(), seccomp: docker.seccomp },
      ports: options.ports(),
      orphans: [...options.orphans()],
      sources,
      update: options.updateStatus(),
    };
  }

  return {
    /** Rejects with `upstream_unavailable` if the engine or the host has never answered. */
    read(): Promise<Inventory> {
      const nowMs = clock.monotonicMs();
      if (cached !== null && nowMs - cached.atMs < CACHE_MS) return cached.inventory;
      const inventory = collect();
      cached = { atMs: nowMs, inventory };
      inventory.catch(() => {
        cached = null;
      });
      return inventory;
    },
  };
}

function unavailable(what: string, cause: unknown): ApiError {
  return new ApiError('upstream_unavailable', `${what} could not be read`, { cause });
}
