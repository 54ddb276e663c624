/** Compares the rows with the engine's containers, wakes pods that differ, and expires leases and tombstones. */
import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import {
  type ContainerEngine,
  type ContainerState,
  EngineError,
  LABELS,
} from '../containers/engine/engine.ts';
import type { EngineHealth } from '../containers/engine/engine-health.ts';
import { podLabels } from '../containers/engine/labels.ts';
import type { PortService } from '../leases/port.service.ts';
import { hasLaunched } from './launch-limit.ts';
import type { OomEvents } from './oom-events.ts';
import type { FactsOf } from './plan-facts.ts';
import { planPod } from './pod.plan.ts';
import type { PodRow } from './pod.store.ts';
import type { PodRecords } from './pod-records.ts';
import type { PodSupervisor } from './pod-worker.ts';

export const RECONCILE_INTERVAL_MS = 10_000;
/** Time for which rows of removed pods are retained, so that a repeated DELETE gets the same response. */
export const TOMBSTONE_MS = 24 * 3_600_000;
const EVENTS_RETRY_MS = 1_000;
/** Engine events after which a pod may differ from its row. Other events are caused by the agent's own calls. */
const WAKING_ACTIONS = new Set(['die', 'destroy', 'oom']);

/** Creates the reconcile loop. Correctness depends on its periodic list only; events reduce the delay. */
export function createReconcile(deps: {
  executorId: string;
  engine: ContainerEngine;
  health: EngineHealth;
  records: PodRecords;
  ports: PortService;
  supervisor: PodSupervisor;
  clock: Clock;
  log: Log;
  factsOf: FactsOf;
  oomEvents: Pick<OomEvents, 'note'>;
  /** Called when the kernel has killed a process of the pod because it was out of memory. */
  onOom(podId: string): void;
  /** Called after each pass; `failure` is null if it completed. */
  onRun(tookMs: number, failure: 'engine_away' | 'internal' | null): void;
}) {
  const { engine, health, records, ports, supervisor, clock, log } = deps;
  const labels = podLabels(deps.executorId);
  const corrupt = new Set<string>();

  async function observe(): Promise<Map<string, ContainerState[]> | null> {
    try {
      const containers = await health.listContainers(labels);
      return Map.groupBy(containers, (container) => container.labels[LABELS.pod] ?? '');
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      return null;
    }
  }

  /**
   * Returns true if the pod's worker need not be woken. Returns false for a wait that has an end and for a staged
   * change: after a restart of the agent, no worker has a timer for these.
   */
  function isSettled(row: PodRow, containers: readonly ContainerState[]): boolean {
    const step = planPod(row, containers, deps.factsOf(row));
    return step.kind === 'wait' && step.untilMs === null && row.staged_json === null;
  }

  function recordLaunched(row: PodRow, containers: readonly ContainerState[]): void {
    if (row.launched === 1 || row.phase === 'removed') return;
    if (!hasLaunched(containers, deps.factsOf(row))) return;
    records.change(row.id, (now) => (now.launched === 1 ? null : { launched: 1 }));
  }

  /** Logs each corrupt row once. The pod's leases and objects are left unchanged until a DELETE. */
  function reportCorrupt(id: string): void {
    if (!corrupt.has(id)) log.error({ pod_id: id }, 'pod row is corrupt');
    corrupt.add(id);
  }

  /** Returns false if the engine did not answer. */
  async function compare(): Promise<boolean> {
    ports.dropCooled();
    records.dropTombstones(clock.now() - TOMBSTONE_MS);
    const found = await observe();
    if (found === null) return false;
    const rows = records.list(reportCorrupt);
    for (const row of rows) {
      const containers = found.get(row.id) ?? [];
      recordLaunched(row, containers);
      const busy = !supervisor.isIdle(row.id);
      if (!busy && !isSettled(row, containers)) supervisor.wake(row.id);
    }
    supervisor.retain(new Set(rows.filter((row) => row.phase !== 'removed').map((row) => row.id)));
    return true;
  }

  return {
    async runOnce(): Promise<void> {
      const beganMs = clock.monotonicMs();
      const tookMs = () => clock.monotonicMs() - beganMs;
      try {
        const isDone = await compare();
        deps.onRun(tookMs(), isDone ? null : 'engine_away');
      } catch (error) {
        deps.onRun(tookMs(), 'internal');
        throw error;
      }
    },
    /**
     * Wakes pods on events of their containers until `signal` aborts. Calls `onOpen` whenever the stream opens: earlier
     * events may have been missed.
     */
    async followEvents(signal: AbortSignal, onOpen: () => void): Promise<void> {
      const opened = () => {
        health.answered();
        onOpen();
      };
      while (!signal.aborted) {
        try {
          for await (const event of engine.events(labels, signal, opened)) {
            if (event.action === 'oom') {
              deps.onOom(event.podId);
              deps.oomEvents.note(event);
            }
            if (WAKING_ACTIONS.has(event.action)) supervisor.wake(event.podId);
          }
        } catch (error) {
          log.debug({ detail: messageOf(error) }, 'engine event stream ended');
          // Recorded at once: containers that end from now on were ended by the engine's restart.
          if (error instanceof EngineError && error.kind === 'unavailable') {
            health.lost(error.message);
          }
        }
        await clock.sleep(EVENTS_RETRY_MS, signal).catch(() => undefined);
      }
    },
  };
}
