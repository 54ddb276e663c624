/** Queries on due_work. */
import { sql } from 'kysely';
import { isPostgres } from '../../../database/engine.ts';
import { notifyFrom } from '../database/notifier.ts';
import { idsJson, isListed, prepared, type Slots } from '../database/prepared.ts';
import type { Db, DueWork } from '../database/tables.ts';

export type DueKey = Pick<DueWork, 'kind' | 'subject'>;

/** First key of the advisory locks of the schedule; an arbitrary constant that no other lock uses. */
const LOCK_CLASS = 7_306_914;

const put = prepared((db, row: Slots<{ kind: string; subject: string; dueAtMs: number }>) => {
  const values = { due_at: row.dueAtMs, look_at: row.dueAtMs, attempts: 0, last_error: null };
  return db
    .insertInto('due_work')
    .values({ kind: row.kind, subject: row.subject, ...values })
    .onConflict((conflict) => conflict.columns(['kind', 'subject']).doUpdateSet(values));
});

/** Stores or replaces the row and notifies the schedule. */
export async function putDue(tx: Db, row: DueKey & { dueAtMs: number }): Promise<void> {
  await put(tx, row);
  notifyFrom(tx, 'due', row.dueAtMs);
}

const add = prepared((db, row: Slots<{ kind: string; subject: string; dueAtMs: number }>) =>
  db
    .insertInto('due_work')
    .values({
      kind: row.kind,
      subject: row.subject,
      due_at: row.dueAtMs,
      look_at: row.dueAtMs,
      attempts: 0,
      last_error: null,
    })
    .onConflict((conflict) => conflict.columns(['kind', 'subject']).doNothing()),
);

/** Stores the row if there is no row for the same kind and subject. */
export async function addDue(tx: Db, row: DueKey & { dueAtMs: number }): Promise<void> {
  await add(tx, row);
}

const drop = prepared((db, { kind, subject }: Slots<{ kind: string; subject: string }>) =>
  db.deleteFrom('due_work').where('kind', '=', kind).where('subject', '=', subject),
);

export async function dropDue(tx: Db, { kind, subject }: DueKey): Promise<void> {
  await drop(tx, { kind, subject });
}

const dueAt = prepared((db, { kind, subject }: Slots<{ kind: string; subject: string }>) =>
  db
    .selectFrom('due_work')
    .select('due_at')
    .where('kind', '=', kind)
    .where('subject', '=', subject),
);

export async function dueAtOf(db: Db, { kind, subject }: DueKey): Promise<number | null> {
  return (await dueAt(db, { kind, subject })).rows[0]?.due_at ?? null;
}

/**
 * The kind of a row as an expression. Rows are read in the order of their time, because most rows are of these kinds.
 * Otherwise the engines would read all rows of each kind, and sort them.
 */
const KIND = sql<string>`kind || ''`;

type Due = { kinds: string; nowMs: number; limit: number };

const due = prepared((db, { kinds, nowMs, limit }: Slots<Due>) =>
  db
    .selectFrom('due_work')
    .selectAll()
    .where('look_at', '<=', nowMs)
    .where(isListed(db, KIND, kinds))
    .orderBy('look_at')
    .orderBy('kind')
    .orderBy('subject')
    .limit(limit),
);

/** Lists due rows of these kinds, the earliest first. */
export async function listDue(
  db: Db,
  { kinds, nowMs, limit }: { kinds: readonly string[]; nowMs: number; limit: number },
): Promise<DueWork[]> {
  return (await due(db, { kinds: idsJson(kinds), nowMs, limit })).rows;
}

const earliest = prepared((db, { kinds }: Slots<{ kinds: string }>) =>
  db
    .selectFrom('due_work')
    .select('look_at')
    .where(isListed(db, KIND, kinds))
    .orderBy('look_at')
    .limit(1),
);

/** Returns the earliest time at which a row of these kinds is to be processed; null if there is no row. */
export async function earliestDue(db: Db, kinds: readonly string[]): Promise<number | null> {
  return (await earliest(db, { kinds: idsJson(kinds) })).rows[0]?.look_at ?? null;
}

/**
 * Locks the work of a row until the transaction ends. Returns false if another transaction has locked it. The row
 * itself is not locked, because a transaction that sets or clears the row may hold locks that the work needs.
 */
export async function tryLock(tx: Db, { kind, subject }: DueKey): Promise<boolean> {
  if (!isPostgres(tx)) return true;
  const { rows } = await sql<{ ours: boolean }>`
    select pg_try_advisory_xact_lock(${LOCK_CLASS}, hashtext(${`${kind} ${subject}`})) as ours
  `.execute(tx);
  return rows[0]?.ours === true;
}

type Read = Pick<DueWork, 'kind' | 'subject' | 'due_at' | 'look_at'>;

const remove = prepared((tx, row: Slots<Read>) =>
  tx
    .deleteFrom('due_work')
    .where('kind', '=', row.kind)
    .where('subject', '=', row.subject)
    .where('due_at', '=', row.due_at)
    .where('look_at', '=', row.look_at),
);

/** Removes the row if it has not changed since it was read. Returns false if the row was removed or changed. */
export async function removeRead(
  tx: Db,
  { kind, subject, due_at, look_at }: DueWork,
): Promise<boolean> {
  const { numAffectedRows = 0n } = await remove(tx, { kind, subject, due_at, look_at });
  return numAffectedRows > 0n;
}

/** Stores a failed attempt if the row has not changed since it was read. */
export async function postpone(
  db: Db,
  row: DueWork,
  { retryAtMs, error }: { retryAtMs: number; error: string },
): Promise<void> {
  await db
    .updateTable('due_work')
    .set({ look_at: retryAtMs, attempts: row.attempts + 1, last_error: error })
    .where('kind', '=', row.kind)
    .where('subject', '=', row.subject)
    .where('due_at', '=', row.due_at)
    .where('look_at', '=', row.look_at)
    .execute();
}
