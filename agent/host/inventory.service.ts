/** What this host has, collected at most every two seconds however many ask. */
import type { Inventory } from '#shared/api/agent/inventory.ts';
import type { UpdateStatus } from '#shared/api/agent/update-status.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { VERSION } from '#shared/runtime/version.ts';
import type { ContainerEngine, EngineInfo } from '../containers/engine/engine.ts';
import type { GpuDriver } from '../gpu/gpu-driver.ts';
import { type AvailabilityOf, gpuInventory } from '../gpu/gpu-inventory.ts';
import type { HostProbe } from './host-probe.ts';
import type { ReadHostSources } from './host-sources.ts';

export type InventoryService = ReturnType<typeof createInventoryService>;

export type InventoryServiceOptions = {
  clock: Clock;
  executorId: string;
  engine: Pick<ContainerEngine, 'info'>;
  gpu: GpuDriver;
  host: Pick<HostProbe, 'read'>;
  /** What is compared with it. */
  hostSources: ReadHostSources;
  /** Who holds a GPU, and whether it may be had. */
  gpuStanding: AvailabilityOf;
  /** The range of host ports for pods and how many of them are free. */
  ports(): Inventory['ports'];
  /** What fences pods in, but for what the engine tells itself. */
  isolation(): Omit<Inventory['isolation'], 'seccomp'>;
  /** Objects in the engine that belong to no pod. */
  orphans(): readonly Inventory['orphans'][number][];
  /** Whether GPUs reached a container when that was last tried; null when it never was. */
  gpuRuntimeTried(): boolean | null;
  /** How its own update stands. */
  updateStatus(): UpdateStatus;
  /** Called with the source's name after each success: the age of what we know is a metric. */
  onCollected?(collector: string): void;
};

const CACHE_MS = 2_000;

export function createInventoryService(options: InventoryServiceOptions) {
  const { clock } = options;
  let cached: { atMs: number; inventory: Promise<Inventory> } | null = null;
  let lastEngineInfo: EngineInfo | null = null;

  async function engineInfo(): Promise<EngineInfo> {
    try {
      lastEngineInfo = await options.engine.info();
      options.onCollected?.('engine');
    } catch (error) {
      // What the engine is does not change while it is away; whether it answers is /readyz's business.
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
    options.onCollected?.('host');
    if (reading.ageMs === 0) options.onCollected?.('gpu');
    return {
      executor_id: options.executorId,
      agent_version: VERSION,
      collected_ms: clock.now(),
      simulated: options.gpu.kind === 'simulated',
      gpu: gpuInventory(options.gpu.kind, reading, options.gpuStanding),
      ...host,
      docker: {
        version: docker.version,
        storage_driver: docker.storageDriver,
        cgroup_version: docker.cgroupVersion,
        // Trying tells more than the list of runtimes: hooks and CDI are not on it.
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
    /** Rejects with `upstream_unavailable` when engine or host never answered. */
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
