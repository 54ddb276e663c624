/** Removes what is old, at its times and once, however many processes there are: a row of the schedule for each kind of thing. */
import { runEach } from '#shared/runtime/loop.ts';
import type { Database, Db } from '../database/tables.ts';
import { addDue } from './schedule.store.ts';
import type { DueHandler } from './schedule.ts';

/** Between two removals of the same things. */
const INTERVAL_MS = 600_000;

/** What removes old things, by a word for them; nothing but queries on the transaction. */
export type Sweeps = Readonly<Record<string, (tx: Db) => Promise<unknown>>>;

export type Retention = ReturnType<typeof createRetention>;

export function createRetention({ db, sweeps }: { db: Database; sweeps: Sweeps }) {
  const byWord = new Map(Object.entries(sweeps));
  return {
    handler: {
      async run(tx, { subject, nowMs }) {
        const sweep = byWord.get(subject);
        // Of another version, which will set it again.
        if (sweep === undefined) return undefined;
        await sweep(tx);
        return { againAtMs: nowMs + INTERVAL_MS };
      },
    } satisfies DueHandler,

    /** Puts on the schedule what is not there yet. */
    async begin(nowMs: number): Promise<void> {
      for (const subject of byWord.keys()) {
        await addDue(db, { kind: 'retention', subject, dueAtMs: nowMs });
      }
    },

    /** Removes everything that is old now, whenever it is due: tests call it. */
    runOnce: () =>
      runEach([...byWord.values()].map((sweep) => () => db.transaction().execute(sweep))),
  };
}
