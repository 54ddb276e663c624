/** Row locks, savepoints, and transactions that are retried after a conflict on PostgreSQL. */
import { sql } from 'kysely';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import { isPostgres, isSerializationFailure } from '../../../database/engine.ts';
import type { Database, Db, Tables } from './tables.ts';

/** Tables whose rows are locked, checked and then changed. */
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
 * Locks a row until the commit. Call it before the transaction reads a row that it checks and changes, or whose
 * dependent rows it counts.
 * On SQLite the function does nothing, because transactions begin IMMEDIATE and run one at a time. PostgreSQL runs
 * transactions concurrently at READ COMMITTED, where only conditional updates (`where state in …`), unique keys and
 * this lock separate them. To avoid deadlocks, take locks in this order: providers, executors, pods, accounts,
 * gpu_slots, templates, api_keys, backup_repositories, volumes, and last the accounts of the ledger.
 */
export async function lockRow(tx: Db, table: LockedTable, id: string): Promise<void> {
  if (!tx.isTransaction) throw new Error('lockRow needs a transaction');
  if (!isPostgres(tx)) return;
  // NO KEY UPDATE, so that other transactions can add rows that reference this one.
  await sql`select 1 from ${sql.table(table)} where id = ${id} for no key update`.execute(tx);
}

/** Locks several rows of one table, in the order of their ids. */
export async function lockRows(tx: Db, table: LockedTable, ids: Iterable<string>): Promise<void> {
  for (const id of [...new Set(ids)].toSorted()) await lockRow(tx, table, id);
}

/** Keys of the tables whose rows `lockFreeRows` locks. */
const FREE_KEYS = { executors: 'id', pods: 'id', sync_turns: 'executor_id' } as const;

/**
 * Locks those of the rows that no other transaction has locked, and returns their ids. Does not wait, so that it cannot
 * cause a deadlock. On SQLite it returns all ids.
 */
export async function lockFreeRows(
  tx: Db,
  table: keyof typeof FREE_KEYS,
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  if (ids.length === 0 || !isPostgres(tx)) return new Set(ids);
  const key = sql.ref(FREE_KEYS[table]);
  const { rows } = await sql<{ id: string }>`select ${key} as id from ${sql.table(table)}
    where ${key} = any(${ids}) for no key update skip locked`.execute(tx);
  return new Set(rows.map(({ id }) => id));
}

/** Runs `work` in a savepoint of `tx`. If `work` rejects, its changes and locks are undone, and `tx` can continue. */
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

/** Runs `work` in `tx`, and then undoes the changes and locks of `work`. Returns or throws the result of `work`. */
export async function rehearse<T>(tx: Db, work: () => Promise<T>): Promise<T> {
  await sql`savepoint rehearsal`.execute(tx);
  try {
    return await work();
  } finally {
    await sql`rollback to savepoint rehearsal`.execute(tx);
    await sql`release savepoint rehearsal`.execute(tx);
  }
}

/**
 * Maximum number of attempts. A transaction that has failed this often is not retried, because the conflict is not
 * transient.
 */
const MAX_ATTEMPTS = 5;
/**
 * Pause before the third attempt; it doubles with each further attempt. The second attempt starts at once, because the
 * other transaction has meanwhile continued.
 */
const FIRST_PAUSE_MS = 20;

export type MoneyDeps = { db: Database; clock: Pick<Clock, 'sleep'>; random: Pick<Random, 'int'> };

/**
 * Runs `work` in a transaction, and again after a deadlock or serialization failure on PostgreSQL. `work` must be
 * repeatable: apart from its transaction, it may only set values that a second run sets again.
 */
export async function moneyTransaction<T>(
  { db, clock, random }: MoneyDeps,
  work: (tx: Db) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await db.transaction().execute(work);
    } catch (error) {
      if (attempt >= MAX_ATTEMPTS || !isSerializationFailure(error)) throw error;
      if (attempt > 1) await clock.sleep(pauseMs(attempt, random));
    }
  }
}

/** Returns the pause with jitter, so that two conflicting transactions do not collide again. */
function pauseMs(attempt: number, random: Pick<Random, 'int'>): number {
  const longest = FIRST_PAUSE_MS * 2 ** (attempt - 2);
  return longest / 2 + random.int(longest / 2 + 1);
}
