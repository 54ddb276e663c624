/** Removes old rows at intervals. Each removal is work of the schedule, so only one process runs it. */
import { runEach } from '#shared/runtime/loop.ts';
import type { Database, Db } from '../database/tables.ts';
import { addDue } from './schedule.store.ts';
import type { DueHandler } from './schedule.ts';

const INTERVAL_MS = 600_000;

/** Functions that remove old rows, by name. They may only query the transaction. */
export type Sweeps = Readonly<Record<string, (tx: Db) => Promise<unknown>>>;

export type Retention = ReturnType<typeof createRetention>;

/** `pollMs`: shortest interval. */
export function createRetention({
  db,
  sweeps,
  pollMs = 0,
}: {
  db: Database;
  sweeps: Sweeps;
  pollMs?: number;
}) {
  const intervalMs = Math.max(INTERVAL_MS, pollMs);
  const byName = new Map(Object.entries(sweeps));
  return {
    handler: {
      async run(tx, { subject, nowMs }) {
        const sweep = byName.get(subject);
        // This version of the program does not have this removal. A version that has it will schedule it again.
        if (sweep === undefined) return undefined;
        await sweep(tx);
        return { againAtMs: nowMs + intervalMs };
      },
    } satisfies DueHandler,

    /** Schedules the removals that are not scheduled yet. */
    async begin(nowMs: number): Promise<void> {
      for (const subject of byName.keys()) {
        await addDue(db, { kind: 'retention', subject, dueAtMs: nowMs });
      }
    },

    /** Runs all removals now. Called only by tests. */
    runOnce: () =>
      runEach([...byName.values()].map((sweep) => () => db.transaction().execute(sweep))),
  };
}
