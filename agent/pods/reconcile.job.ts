/** Compares the rows with what the engine has, wakes pods that differ, and looks after leases and tombstones. */

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
import type { FactsOf } from './plan-facts.ts';
import { planPod } from './pod.plan.ts';
import type { PodRow } from './pod.store.ts';
import type { PodRecords } from './pod-records.ts';
import type { PodSupervisor } from './pod-worker.ts';

export const RECONCILE_INTERVAL_MS = 10_000;
/** Removed pods are remembered this long, so that a repeated DELETE is answered alike. */
export const TOMBSTONE_MS = 24 * 3_600_000;
const EVENTS_RETRY_MS = 1_000;
/** Events after which a pod may differ from its row; others are echoes of our own calls. */
const WAKING_ACTIONS = new Set(['die', 'destroy', 'oom']);

/** The relist is the truth, the events only make it early (agent reference 5). */
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
  /** The kernel ended a process of a pod for want of memory. */
  onOom(podId: string): void;
  /** A pass is over; `failure` null: it did its work. */
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

  /** A wait with an end counts as work, and so does a change: after a restart no worker knows of it. */
  function isSettled(row: PodRow, containers: readonly ContainerState[]): boolean {
    const step = planPod(row, containers, deps.factsOf(row));
    return step.kind === 'wait' && step.untilMs === null && row.staged_json === null;
  }

  /** Told once; its leases stay held and its objects are left alone until its removal is asked for. */
  function reportCorrupt(id: string): void {
    if (!corrupt.has(id)) log.error({ pod_id: id }, 'a row of the store is corrupt');
    corrupt.add(id);
  }

  /** False: the engine did not answer, and nothing was compared. */
  async function compare(): Promise<boolean> {
    ports.dropCooled();
    records.dropTombstones(clock.now() - TOMBSTONE_MS);
    const found = await observe();
    if (found === null) return false;
    const rows = records.list(reportCorrupt);
    for (const row of rows) {
      const busy = !supervisor.isIdle(row.id);
      if (!busy && !isSettled(row, found.get(row.id) ?? [])) supervisor.wake(row.id);
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
     * Wakes pods as the engine tells of their containers; returns when `signal` aborts. `onOpen`: what
     * happened before this moment was not told.
     */
    async followEvents(signal: AbortSignal, onOpen: () => void): Promise<void> {
      const opened = () => {
        health.answered();
        onOpen();
      };
      while (!signal.aborted) {
        try {
          for await (const event of engine.events(labels, signal, opened)) {
            if (event.action === 'oom') deps.onOom(event.podId);
            if (WAKING_ACTIONS.has(event.action)) supervisor.wake(event.podId);
          }
        } catch (error) {
          log.debug({ detail: messageOf(error) }, 'the event stream of the engine ended');
          // At once, and not with the next relist: what ends from here on is the engine's doing.
          if (error instanceof EngineError && error.kind === 'unavailable') {
            health.lost(error.message);
          }
        }
        await clock.sleep(EVENTS_RETRY_MS, signal).catch(() => undefined);
      }
    },
  };
}
