/** Word of rows that were set through this process: it looks for them in time, though nobody else tells it. */
import { withBell } from '../database/bell.ts';
import type { Database } from '../database/tables.ts';

export type DueNews = ReturnType<typeof createDueNews>;

export function createDueNews() {
  let hear: (dueAtMs: number) => void = () => undefined;
  return {
    /** `db` with every row told of that is set through it, or through its transactions: before they commit. */
    toldBy: (db: Database): Database => withBell(db, 'due', (word) => hear(Number(word))),

    /** One listener. */
    listen(onDue: (dueAtMs: number) => void): void {
      hear = onDue;
    },
  };
}
