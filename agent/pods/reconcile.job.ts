/** Compares the rows with what the engine has, wakes pods that differ, and looks after leases and tombstones. */
import type { Clock } from '#shared/clock.ts';
import { messageOf } from '#shared/errors.ts';
import type { Log } from '#shared/log.ts';
import {
  type ContainerEngine,
  type ContainerState,
  EngineError,
  LABELS,
} from '../docker/engine.ts';
import type { EngineHealth } from '../docker/engine-health.ts';
import type { GpuLeases } from '../gpu/gpu-lease.ts';
import type { PortService } from '../ports/port.service.ts';
import type { PodRow } from '../store/pod.store.ts';
import { executorLabels } from './pod.container.ts';
import { planPod } from './pod.plan.ts';
import { launchHash, publishedPorts } from './pod.record.ts';
import type { PodRecords } from './pod.records.ts';
import type { PodSupervisor } from './pod.supervisor.ts';

export const RECONCILE_INTERVAL_MS = 10_000;
/** Removed pods are remembered this long, so that a repeated DELETE is answered alike. */
export const TOMBSTONE_MS = 24 * 3_600_000;
const EVENTS_RETRY_MS = 1_000;
/** Unknown containers that are remembered as reported; beyond it one is reported again. */
const MAX_REPORTED = 1_000;
/** Events after which a pod may differ from its row; others are echoes of our own calls. */
const WAKING_ACTIONS = new Set(['die', 'destroy', 'oom']);

/** The relist is the truth, the events only make it early (agent reference 5). */
export function createReconcile(deps: {
  executorId: string;
  engine: ContainerEngine;
  health: EngineHealth;
  records: PodRecords;
  ports: PortService;
  gpuLeases: GpuLeases;
  supervisor: PodSupervisor;
  clock: Clock;
  log: Log;
  hostBootMs: number;
  /** Called for each container of ours that belongs to no pod, once. */
  onUnknown(containerId: string): void;
}) {
  const { engine, health, records, ports, supervisor, clock, log } = deps;
  const labels = executorLabels(deps.executorId);
  const reported = new Set<string>();

  async function observe(): Promise<Map<string, ContainerState[]> | null> {
    try {
      const containers = await engine.listContainers(labels);
      health.answered();
      return Map.groupBy(containers, (container) => container.labels[LABELS.pod] ?? '');
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      health.lost(error.message);
      return null;
    }
  }

  /** A wait with an end counts as work: after a restart no worker's timer is set for it. */
  function isSettled(row: PodRow, containers: readonly ContainerState[]): boolean {
    const hash = launchHash(row.spec_hash, publishedPorts(row, ports.portsOf(row.id)));
    const facts = { nowMs: clock.now(), hostBootMs: deps.hostBootMs, launchHash: hash };
    const step = planPod(row, containers, facts);
    return step.kind === 'wait' && step.untilMs === null;
  }

  /** Never removed without a signed order: it may be the only trace of a lost store. */
  function reportUnknown(found: Map<string, ContainerState[]>, known: ReadonlySet<string>): void {
    for (const [podId, containers] of found) {
      if (known.has(podId)) continue;
      for (const { id, name } of containers) {
        if (reported.has(id)) continue;
        if (reported.size >= MAX_REPORTED) reported.clear();
        reported.add(id);
        log.warn({ container_id: id, container: name }, 'a container of ours belongs to no pod');
        deps.onUnknown(id);
      }
    }
  }

  return {
    async runOnce(): Promise<void> {
      ports.dropCooled();
      records.dropTombstones(clock.now() - TOMBSTONE_MS);
      await deps.gpuLeases.recheckDirty();
      const found = await observe();
      if (found === null) return;
      const rows = records.list((id) => log.error({ pod_id: id }, 'a row of the store is corrupt'));
      const known = new Set(rows.map((row) => row.id));
      for (const row of rows) {
        const busy = !supervisor.isIdle(row.id);
        if (!busy && !isSettled(row, found.get(row.id) ?? [])) supervisor.wake(row.id);
      }
      reportUnknown(found, known);
      supervisor.retain(
        new Set(rows.filter((row) => row.phase !== 'removed').map((row) => row.id)),
      );
    },
    /** Wakes pods as the engine tells of their containers; returns when `signal` aborts. */
    async followEvents(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        try {
          for await (const event of engine.events(labels, signal)) {
            if (WAKING_ACTIONS.has(event.action)) supervisor.wake(event.podId);
          }
        } catch (error) {
          log.debug({ detail: messageOf(error) }, 'the event stream of the engine ended');
        }
        await clock.sleep(EVENTS_RETRY_MS, signal).catch(() => undefined);
      }
    },
  };
}
