/** Turns that several processes on one database share: a row per executor with pods. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Database } from '../../platform/database/tables.ts';
import type { Processes } from '../../platform/processes.ts';
import {
  addTurns,
  dropIdleTurns,
  endTurn,
  listDueTurns,
  takeTurns,
  wakeTurns,
} from './sync-turn.store.ts';
import { AFTERMATH_MS, type SyncTurns } from './sync-turns.ts';

export type SharedTurnsDeps = { db: Database; clock: Clock; processes: Processes };

/** A turn that its process never ended is anybody's once that process counts as dead. */
export function createSharedTurns({ db, clock, processes }: SharedTurnsDeps): SyncTurns {
  const { bootId } = processes;
  return {
    async take({ any, slow }, running) {
      const nowMs = clock.now();
      const endedSinceMs = nowMs - AFTERMATH_MS;
      await addTurns(db, endedSinceMs);
      return db.transaction().execute(async (tx) => {
        const others = await processes.others(tx);
        const due = { nowMs, endedSinceMs, others, running };
        const quick = await listDueTurns(tx, { ...due, slow: false, limit: any });
        const room = Math.max(0, Math.min(slow, any - quick.length));
        const turns = [...quick, ...(await listDueTurns(tx, { ...due, slow: true, limit: room }))];
        const ids = turns.map((turn) => turn.executorId);
        await takeTurns(tx, ids, bootId);
        return turns;
      });
    },
    async end(executorId, { pauseMs, failures }) {
      const nowMs = clock.now();
      await endTurn(db, { executorId, failures, bootId, nowMs, dueAtMs: nowMs + pauseMs });
    },
    async wake(executorIds) {
      if (executorIds.length > 0) await wakeTurns(db, executorIds);
    },
    sweep: () => dropIdleTurns(db, clock.now() - AFTERMATH_MS),
  };
}
