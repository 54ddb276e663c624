/** Locks on rows, what makes one transaction at a time true on PostgreSQL as well; attempts that give theirs back, and rehearsals. */
import { sql } from 'kysely';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import { isPostgres, isSerializationFailure } from '../../../database/engine.ts';
import type { Database, Db, Tables } from './tables.ts';

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

// MERGED validator/central/platform/database/transactions.ts: Transactions that move money or change many rows, begun again where PostgreSQL ended them for another one's sake.
/** Whoever loses that often has met something that does not pass. */
const MAX_ATTEMPTS = 5;
/** Before the third attempt, doubled with each; the second comes at once, for the other one goes on already. */
const FIRST_PAUSE_MS = 20;

export type MoneyDeps = { db: Database; clock: Pick<Clock, 'sleep'>; random: Pick<Random, 'int'> };

/**
 * Runs `work` in a transaction, anew where it lost a deadlock or could not be put in order with others; everything it
 * had done is undone then. `work` changes nothing outside its transaction that a second run would not set again.
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

/** Jittered, so that two that lost to each other do not meet again. */
function pauseMs(attempt: number, random: Pick<Random, 'int'>): number {
  const longest = FIRST_PAUSE_MS * 2 ** (attempt - 2);
  return longest / 2 + random.int(longest / 2 + 1);
}
