/** Queries on tables whose rows are retried: they list due rows, and claim a row for one attempt. */

import { sql } from 'kysely';
import type { Db, MailRow, PayoutRow, TopUpRow } from './tables.ts';

type RowOf = { mails: MailRow; payouts: PayoutRow; topups: TopUpRow };
export type DueRow = Pick<RowOf[keyof RowOf], 'id' | 'state' | 'due_at' | 'attempts'>;

export type DueRows<Row extends DueRow> = {
  /** Returns due rows, with the earliest due time first. */
  list(db: Db, nowMs: number, limit: number): Promise<Row[]>;
  /**
   * Claims a row for one attempt and increments the number of its attempts. Returns null if another process has already
   * claimed the row. The claim expires at `leaseUntilMs`.
   */
  claim(db: Db, row: Row, leaseUntilMs: number): Promise<Row | null>;
};

/** `open`: the states in which rows are retried. */
export function dueRows<Table extends keyof RowOf>(
  table: Table,
  open: readonly RowOf[Table]['state'][],
): DueRows<RowOf[Table]> {
  const name: keyof RowOf = table;
  // The states are literals, because SQLite and PostgreSQL do not use a partial index if the condition has bound
  // parameters.
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
      // Kysely does not infer the row type from the table's name.
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
