/** Follows the GPUs of running pods and derives the condition GpuHealthy. */
import type { PodCondition } from '#shared/api/agent/pod.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { type ContainerState, EngineError } from '../containers/engine/engine.ts';
import { podLabels } from '../containers/engine/labels.ts';
import { cordonOf, type GpuIdentity } from '../gpu/cordons.ts';
import type { GpuDriver } from '../gpu/gpu-driver.ts';
import type { Cordon, GpuHealthStore, XidRow } from '../gpu/gpu-health.store.ts';
import type { GpuLeases } from '../gpu/gpu-lease.ts';
import { CORDONING_XIDS, pciKey } from '../gpu/xid.ts';
import type { GpuProbe } from './gpu-probe.job.ts';
import type { PodRecords } from './pod-records.ts';
import { specOf } from './pod-row.ts';

export const GPU_WATCH_INTERVAL_MS = 15_000;

/** The part of a container's state that is used. */
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
  /** Run windows by container id. */
  let windows = new Map<string, RunWindow>();
  /** Leased devices as last read. A device whose card fell off the bus is retained while it is leased. */
  const identities = new Map<string, GpuIdentity>();

  async function readIdentities(): Promise<void> {
    const leased = new Set(gpuLeases.leasedUuids());
    for (const uuid of identities.keys()) if (!leased.has(uuid)) identities.delete(uuid);
    for (const device of (await driver.read()).devices) {
      if (leased.has(device.uuid)) identities.set(device.uuid, device);
    }
  }

  async function readWindows(): Promise<void> {
    const containers = await engine.listContainers(podLabels(deps.executorId));
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
        // While the engine does not answer, the last windows remain valid.
        if (!(error instanceof EngineError)) throw error;
      });
    },
    /** Condition GpuHealthy; null for a pod without real GPUs. */
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
        gpus,
        xids,
        cordons: store.cordons(),
        lostSinceMs: deps.probe.lostSinceMs(podId),
        sinceMs: own?.startedMs ?? row.created_ms,
      });
    },
  };
}

/** Time in which a container ran. Only errors of its cards in this time affect the pod. */
export type RunWindow = { startedMs: number; finishedMs: number | null };

export type GpuConditionFacts = {
  gpus: readonly GpuIdentity[];
  cordons: readonly Cordon[];
  /** Xid errors of the pod's cards while the container ran. */
  xids: readonly XidRow[];
  /** Time since which the GPUs are not visible in the pod; null while they are visible or no probe could run. */
  lostSinceMs: number | null;
  /** Time since which the pod has its GPUs. */
  sinceMs: number;
};

const REMEDY = 'reboot the pod; if that does not help, the host needs a reboot';

export function gpuCondition(facts: GpuConditionFacts): PodCondition {
  const bad = (reason: string, message: string, sinceMs: number): PodCondition => ({
    type: 'GpuHealthy',
    status: false,
    reason,
    message,
    last_transition_ms: sinceMs,
  });
  if (facts.lostSinceMs !== null) {
    const message = `A GPU of this pod is not visible inside it any more: ${REMEDY}`;
    return bad('GpuLostInContainer', message, facts.lostSinceMs);
  }
  // An Xid cordons the card for later pods longer than it affects this pod, so this pod's window decides.
  const lasting = facts.cordons.filter(({ source }) => source !== 'xid');
  for (const gpu of facts.gpus) {
    const cordon = cordonOf(gpu, lasting);
    if (cordon === null) continue;
    const message = `GPU ${gpu.uuid}: ${cordon.reason}: ${cordon.message}`;
    return bad('GpuUnhealthy', message, cordon.since_ms);
  }
  const xid = facts.xids.find(({ code }) => CORDONING_XIDS.has(code));
  if (xid !== undefined) {
    const message = `The driver reported Xid ${xid.code} of the GPU at ${xid.pci}: ${REMEDY}`;
    return bad('GpuUnhealthy', message, xid.at_ms);
  }
  return {
    type: 'GpuHealthy',
    status: true,
    reason: 'Ok',
    message: '',
    last_transition_ms: facts.sinceMs,
  };
}
