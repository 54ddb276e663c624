/** The queue from which the pod sync claims executors that are due: in memory, or shared between processes. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Database } from '../../platform/database/tables.ts';
import type { Processes } from '../../platform/processes.ts';
import { listBusyExecutorIds } from './pod.store.ts';
import {
  addEntries,
  type Claim,
  claimEntries,
  deleteIdleEntries,
  listDueEntries,
  releaseEntry,
  wakeEntries,
} from './sync-queue.store.ts';

/**
 * Time for which executors stay in the queue after their last pod ended, because a launch whose answer was lost may
 * still arrive.
 */
export const WATCH_ENDED_MS = 600_000;

/** Maximum number of claims in total, and of claims for executors that did not answer the last time. */
export type ClaimLimits = { total: number; unreachable: number };

/** Queue in which each executor has at most one claim at a time. */
export type SyncQueue = {
  /**
   * Claims due executors with pods; executors that answered the last time come first. `running` are this process's
   * claims.
   */
  claim(limits: ClaimLimits, running: readonly string[]): Promise<Claim[]>;
  /** Makes the executor due after `pauseMs`, or at once if it was woken during the claim. */
  release(executorId: string, outcome: { pauseMs: number; failures: number }): Promise<void>;
  /** Makes the executors due now. */
  wake(executorIds: readonly string[]): Promise<void>;
  /** Removes executors without pods. */
  sweep(): Promise<void>;
};

type Entry = { dueAtMs: number; failures: number; woken: boolean };

/** Creates the queue of a single process. The queue is in memory, so that a pass does not write to the database. */
export function createLocalSyncQueue({ db, clock }: { db: Database; clock: Clock }): SyncQueue {
  const entries = new Map<string, Entry>();

  function entryOf(executorId: string): Entry {
    const entry = entries.get(executorId) ?? { dueAtMs: 0, failures: 0, woken: false };
    entries.set(executorId, entry);
    return entry;
  }

  return {
    async claim({ total, unreachable }, running) {
      const busyIds = await listBusyExecutorIds(db, clock.now() - WATCH_ENDED_MS);
      const busy = new Set([...busyIds, ...running]);
      for (const id of entries.keys()) if (!busy.has(id)) entries.delete(id);
      const nowMs = clock.monotonicMs();
      const due = busyIds
        .filter((id) => !running.includes(id) && entryOf(id).dueAtMs <= nowMs)
        .map((executorId) => ({ executorId, failures: entryOf(executorId).failures }));
      const answering = due.filter(({ failures }) => failures === 0);
      const failing = due.filter(({ failures }) => failures > 0).slice(0, unreachable);
      const claimed = [...answering, ...failing].slice(0, total);
      for (const { executorId } of claimed) entryOf(executorId).woken = false;
      return claimed;
    },
    async release(executorId, { pauseMs, failures }) {
      const entry = entryOf(executorId);
      entry.failures = failures;
      entry.dueAtMs = clock.monotonicMs() + (entry.woken ? 0 : pauseMs);
    },
    async wake(executorIds) {
      for (const id of executorIds) Object.assign(entryOf(id), { dueAtMs: 0, woken: true });
    },
    async sweep() {
      // Every claim removes executors without pods.
    },
  };
}

/**
 * Creates the queue of several processes on one database, with one row per executor. Claims of a dead process become
 * free again.
 */
export function createSharedSyncQueue(deps: {
  db: Database;
  clock: Clock;
  processes: Processes;
}): SyncQueue {
  const { db, clock, processes } = deps;
  const { bootId } = processes;
  return {
    async claim({ total, unreachable }, running) {
      const nowMs = clock.now();
      const endedSinceMs = nowMs - WATCH_ENDED_MS;
      await addEntries(db, endedSinceMs);
      return db.transaction().execute(async (tx) => {
        const others = await processes.others(tx);
        const due = { nowMs, endedSinceMs, others, running };
        const answering = await listDueEntries(tx, { ...due, failing: false, limit: total });
        const limit = Math.max(0, Math.min(unreachable, total - answering.length));
        const failing = await listDueEntries(tx, { ...due, failing: true, limit });
        const claims = [...answering, ...failing];
        const ids = claims.map(({ executorId }) => executorId);
        await claimEntries(tx, ids, bootId);
        return claims;
      });
    },
    async release(executorId, { pauseMs, failures }) {
      const nowMs = clock.now();
      await releaseEntry(db, { executorId, failures, bootId, nowMs, dueAtMs: nowMs + pauseMs });
    },
    async wake(executorIds) {
      if (executorIds.length > 0) await wakeEntries(db, executorIds);
    },
    sweep: () => deleteIdleEntries(db, clock.now() - WATCH_ENDED_MS),
  };
}
