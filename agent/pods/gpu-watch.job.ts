/** Follows the GPUs of running pods: which cards they are, when their containers ran, what became of them. */
import type { PodCondition } from '#shared/api/agent/pod.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { type ContainerState, EngineError } from '../containers/engine/engine.ts';
import type { GpuIdentity } from '../gpu/cordons.ts';
import type { GpuDriver } from '../gpu/gpu-driver.ts';
import type { GpuHealthStore } from '../gpu/gpu-health.store.ts';
import type { GpuLeases } from '../gpu/gpu-lease.ts';
import { pciKey } from '../gpu/xid.ts';
import { gpuCondition, type RunWindow } from './gpu-condition.ts';
import type { GpuProbe } from './gpu-probe.job.ts';
import { executorLabels } from './pod.container.ts';
import { specOf } from './pod.record.ts';
import type { PodRecords } from './pod.records.ts';

export const GPU_WATCH_INTERVAL_MS = 15_000;

/** What is asked of each container. */
type Run = Pick<ContainerState, 'id' | 'status' | 'startedMs' | 'finishedMs'>;

export type GpuWatch = ReturnType<typeof createGpuWatch>;

export function createGpuWatch(deps: {
  executorId: string;
  engine: { listContainers(labels: Record<string, string>): Promise<readonly Run[]> };
  records: PodRecords;
  driver: { kind: GpuDriver['kind']; read(): Promise<{ devices: readonly GpuIdentity[] }> };
  gpuLeases: Pick<GpuLeases, 'leasedUuids'>;
  store: GpuHealthStore;
  probe: Pick<GpuProbe, 'lostSinceMs'>;
  clock: Clock;
}) {
  const { engine, records, driver, gpuLeases, store, clock } = deps;
  /** By container. */
  let windows = new Map<string, RunWindow>();
  /** As last read; one that fell off the bus is remembered here and by its row in the store. */
  const identities = new Map<string, GpuIdentity>();

  async function readIdentities(): Promise<void> {
    const leased = new Set(gpuLeases.leasedUuids());
    for (const uuid of identities.keys()) if (!leased.has(uuid)) identities.delete(uuid);
    for (const device of (await driver.read()).devices) {
      if (leased.has(device.uuid)) identities.set(device.uuid, device);
    }
  }

  async function readWindows(): Promise<void> {
    const containers = await engine.listContainers(executorLabels(deps.executorId));
    windows = new Map(
      containers.map(({ id, status, startedMs, finishedMs }) => [
        id,
        { startedMs, finishedMs: status === 'running' ? null : finishedMs },
      ]),
    );
  }

  function identify(uuid: string): GpuIdentity {
    const pci_bus_id = store.cards().find((card) => card.uuid === uuid)?.pci ?? null;
    return identities.get(uuid) ?? { uuid, pci_bus_id, mig: null };
  }

  return {
    async runOnce(): Promise<void> {
      if (driver.kind !== 'nvidia' || gpuLeases.leasedUuids().length === 0) return;
      await readIdentities();
      await readWindows().catch((error: unknown) => {
        // The engine is away: what was known last still holds.
        if (!(error instanceof EngineError)) throw error;
      });
    },
    /** Null for a pod without real GPUs. */
    conditionOf(podId: string): PodCondition | null {
      const row = driver.kind === 'nvidia' ? records.get(podId) : null;
      if (row === null || row.phase === 'removed') return null;
      const uuids = specOf(row).gpu_uuids;
      if (uuids.length === 0) return null;
      const gpus = uuids.map(identify);
      const window = windows.get(row.container_id ?? '');
      const own = window !== undefined && window.startedMs > 0 ? window : null;
      const xids =
        own === null
          ? []
          : gpus.flatMap(({ pci_bus_id }) =>
              store.xids(pciKey(pci_bus_id), own.startedMs, own.finishedMs ?? clock.now()),
            );
      return gpuCondition({
        ...{ gpus, xids, cordons: store.cordons() },
        lostSinceMs: deps.probe.lostSinceMs(podId),
        sinceMs: own?.startedMs ?? row.created_ms,
      });
    },
  };
}
