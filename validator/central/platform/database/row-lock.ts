/** Locks on rows, what makes one transaction at a time true on PostgreSQL as well; attempts that give theirs back, and rehearsals. */
import { sql } from 'kysely';
import { isPostgres } from '../../../database/engine.ts';
import type { Db, Tables } from './tables.ts';

/** Tables whose rows are read, judged and then changed. */
type LockedTable = keyof Pick<
  Tables,
  | 'accounts'
  | 'api_keys'
  | 'backup_repositories'
  | 'executors'
  | 'pods'
  | 'providers'
  | 'templates'
  | 'volumes'
>;

/**
 * Call it first, in the transaction that reads a row, judges it and changes it or counts what belongs to it:
 * until the commit nobody else gets past the same call, so that what is read next stays true.
 *
 * SQLite transactions begin IMMEDIATE and run one at a time, so nothing is left to do there. PostgreSQL runs
 * them side by side at READ COMMITTED: an update that states its condition (`where state in …`), a unique key
 * and this lock are all that stands between two of them. Whoever needs several locks takes them in this
 * order, so that nobody waits in a circle: providers, executors, pods, accounts, gpu_slots, templates, api_keys,
 * backup_repositories, volumes, and accounts of the ledger last (ledger/ledger.service.ts).
 */
export async function lockRow(tx: Db, table: LockedTable, id: string): Promise<void> {
  if (!tx.isTransaction) throw new Error('a row is locked outside a transaction');
  if (!isPostgres(tx)) return;
  // NO KEY: rows that only refer to this one can still be added.
  await sql`select 1 from ${sql.table(table)} where id = ${id} for no key update`.execute(tx);
}

/** Several rows of one table: by id, so that nobody waits in a circle there either. */
export async function lockRows(tx: Db, table: LockedTable, ids: Iterable<string>): Promise<void> {
  for (const id of [...new Set(ids)].toSorted()) await lockRow(tx, table, id);
}

/** Runs `work` in `tx`; when it rejects, everything it did is undone, its locks included, and `tx` goes on. */
export async function inSavepoint<T>(tx: Db, work: () => Promise<T>): Promise<T> {
  await sql`savepoint attempt`.execute(tx);
  try {
    const result = await work();
    await sql`release savepoint attempt`.execute(tx);
    return result;
  } catch (error) {
    await sql`rollback to savepoint attempt`.execute(tx);
    await sql`release savepoint attempt`.execute(tx);
    throw error;
  }
}

/** What `work` in `tx` comes to, its refusals too; everything it did is undone, its locks included. */
export async function rehearse<T>(tx: Db, work: () => Promise<T>): Promise<T> {
  await sql`savepoint rehearsal`.execute(tx);
  try {
    return await work();
  } finally {
    await sql`rollback to savepoint rehearsal`.execute(tx);
    await sql`release savepoint rehearsal`.execute(tx);
  }
}
