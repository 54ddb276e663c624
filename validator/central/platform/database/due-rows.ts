/** Rows of what calls upon the world: those that are due, and how one process takes one for an attempt. */

import { sql } from 'kysely';
import type { Db, MailRow, PayoutRow, TopUpRow } from './tables.ts';

/** By table: each row is tried until something comes of it. */
type RowOf = { mails: MailRow; payouts: PayoutRow; topups: TopUpRow };
export type DueRow = Pick<RowOf[keyof RowOf], 'id' | 'state' | 'due_at' | 'attempts'>;

export type DueRows<Row extends DueRow> = {
  /** Those to be tried by now, the longest due first. */
  list(db: Db, nowMs: number, limit: number): Promise<Row[]>;
  /** Takes one for an attempt, which it counts; null when another process did. Nobody else may before `leaseUntilMs`. */
  claim(db: Db, row: Row, leaseUntilMs: number): Promise<Row | null>;
};

/** Of those in one of the states `open`. */
export function dueRows<Table extends keyof RowOf>(
  table: Table,
  open: readonly RowOf[Table]['state'][],
): DueRows<RowOf[Table]> {
  const name: keyof RowOf = table;
  // As the tables' partial indexes name them: a bound state would leave those unused.
  const states = sql.join(open.map((state) => sql.lit(state)));
  const isOpen = sql<boolean>`state ${sql.raw(open.length === 1 ? '=' : 'in')} (${states})`;
  return {
    async list(db, nowMs, limit) {
      const rows: unknown[] = await db
        .selectFrom(name)
        .selectAll()
        .where(isOpen)
        .where('due_at', '<=', nowMs)
        .orderBy('due_at')
        .limit(limit)
        .execute();
      // Kysely cannot tell which of the tables it was.
      return rows as RowOf[Table][];
    },

    async claim(db, row, leaseUntilMs) {
      const change = { due_at: leaseUntilMs, attempts: row.attempts + 1 };
      const done = await db
        .updateTable(name)
        .set(change)
        .where('id', '=', row.id)
        .where('state', '=', row.state)
        .where('due_at', '=', row.due_at)
        .executeTakeFirst();
      return done.numUpdatedRows > 0n ? { ...row, ...change } : null;
    },
  };
}
