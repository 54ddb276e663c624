/** Whose turn it is to ask an executor, and when: what the pod sync takes its work from. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Database } from '../../platform/database/tables.ts';
import { listBusyExecutorIds } from './pod.store.ts';

/** A launch whose answer was lost may arrive after its pod has ended: agents are watched this long. */
export const AFTERMATH_MS = 600_000;

export type Turn = {
  executorId: string;
  /** Passes in a row without an answer. */
  failures: number;
};

/** How many turns may be taken: of all, and of executors that did not answer last time. */
export type Room = { any: number; slow: number };

/** Each executor is in at most one turn at a time. */
export type SyncTurns = {
  /** Turns on executors with pods that are due, those that answer first. `running` are this process's own. */
  take(room: Room, running: readonly string[]): Promise<Turn[]>;
  /** Due again after `pauseMs`, or at once if it was woken meanwhile. */
  end(executorId: string, outcome: { pauseMs: number; failures: number }): Promise<void>;
  /** Due now, whatever its pace was. */
  wake(executorIds: readonly string[]): Promise<void>;
  /** Forgets executors without pods. */
  sweep(): Promise<void>;
};

type Pace = { dueAtMs: number; failures: number; woken: boolean };

/** Where this process is the only one: in its memory, so that a pass costs the database nothing. */
export function createLocalTurns({ db, clock }: { db: Database; clock: Clock }): SyncTurns {
  const paces = new Map<string, Pace>();

  function paceOf(executorId: string): Pace {
    const pace = paces.get(executorId) ?? { dueAtMs: 0, failures: 0, woken: false };
    paces.set(executorId, pace);
    return pace;
  }

  return {
    async take({ any, slow }, running) {
      const busyIds = await listBusyExecutorIds(db, clock.now() - AFTERMATH_MS);
      const busy = new Set([...busyIds, ...running]);
      for (const id of paces.keys()) if (!busy.has(id)) paces.delete(id);
      const nowMs = clock.monotonicMs();
      const due = busyIds.filter((id) => !running.includes(id) && paceOf(id).dueAtMs <= nowMs);
      const turns = due.map((executorId) => ({
        executorId,
        failures: paceOf(executorId).failures,
      }));
      const quick = turns.filter((turn) => turn.failures === 0);
      const taken = [...quick, ...turns.filter((turn) => turn.failures > 0).slice(0, slow)];
      for (const { executorId } of taken.slice(0, any)) paceOf(executorId).woken = false;
      return taken.slice(0, any);
    },
    async end(executorId, { pauseMs, failures }) {
      const pace = paceOf(executorId);
      pace.failures = failures;
      pace.dueAtMs = clock.monotonicMs() + (pace.woken ? 0 : pauseMs);
    },
    async wake(executorIds) {
      for (const id of executorIds) Object.assign(paceOf(id), { dueAtMs: 0, woken: true });
    },
    async sweep() {
      // Done with every take.
    },
  };
}
