/** All queries on executors. Lists join the provider. */

import { type SqlBool, sql, type Updateable } from 'kysely';
import {
  idsJson,
  isAmongJoined,
  jsonRows,
  prepared,
  preparedEach,
  type Slots,
} from '../../platform/database/prepared.ts';
import type { ExecutorsTable } from '../../platform/database/tables/executors.ts';
import type { Db, Executor, NewExecutor } from '../../platform/database/tables.ts';
import { lockFreeRows } from '../../platform/database/transactions.ts';

/** An executor with the columns of its provider that decide whether it is offered. */
export type ExecutorEntry = Executor & {
  miner_hotkey: string;
  opted_in: 0 | 1;
  banned_at: number | null;
};

/**
 * The state of removed executors as a literal: with a parameter, databases do not use the index on the addresses of all
 * other executors, and SQLite prepares the statement again for each run to compare the parameter with that index.
 */
const REMOVED = sql.lit<Executor['state']>('removed');

function entries(db: Db) {
  return db
    .selectFrom('executors')
    .innerJoin('providers', 'providers.id', 'executors.provider_id')
    .selectAll('executors')
    .select(['providers.hotkey as miner_hotkey', 'providers.opted_in', 'providers.banned_at']);
}

const byId = prepared((db, { id }: Slots<{ id: string }>) =>
  entries(db).where('executors.id', '=', id),
);

/** Finds an executor in any state, including removed executors. */
export async function findExecutor(db: Db, id: string): Promise<ExecutorEntry | undefined> {
  return (await byId(db, { id })).rows[0];
}

/** Finds executors in any state. */
export async function findExecutors(db: Db, ids: readonly string[]): Promise<ExecutorEntry[]> {
  return ids.length === 0 ? [] : entries(db).where('executors.id', 'in', ids).execute();
}

/** Returns the times of the last verdicts by id; an executor without a verdict is missing. */
export async function verdictTimes(
  db: Db,
  ids: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  if (ids.length === 0) return new Map();
  const rows = await db
    .selectFrom('executors')
    .select(['id', 'verdict_at'])
    .where('id', 'in', ids)
    .execute();
  return new Map(rows.flatMap(({ id, verdict_at: at }) => (at === null ? [] : [[id, at]])));
}

/** Returns the verified executors whose last verdict is from before the time. */
export async function verdictsBefore(
  db: Db,
  beforeMs: number,
): Promise<{ id: string; at: number }[]> {
  const rows = await db
    .selectFrom('executors')
    .select(['id', 'verdict_at'])
    .where('verdict_at', '<', beforeMs)
    .where('state', '=', 'verified')
    .execute();
  return rows.flatMap(({ id, verdict_at: at }) => (at === null ? [] : [{ id, at }]));
}

/** Finds the executor at an address, unless it was removed. */
export async function findExecutorAt(
  db: Db,
  ipAddress: string,
  port: number,
): Promise<ExecutorEntry | undefined> {
  return entries(db)
    .where('ip_address', '=', ipAddress)
    .where('port', '=', port)
    .where('state', '<>', REMOVED)
    .executeTakeFirst();
}

/** Returns the ids of the executors at an address on any port, except removed ones. */
export async function idsAt(db: Db, ipAddress: string, limit: number): Promise<string[]> {
  const rows = await db
    .selectFrom('executors')
    .select('id')
    .where('ip_address', '=', ipAddress)
    .where('state', '<>', REMOVED)
    .orderBy('port')
    .limit(limit)
    .execute();
  return rows.map(({ id }) => id);
}

/** Executors that validators check: all except removed ones, oldest first, without measurements. */
export async function listPresent(db: Db) {
  return db
    .selectFrom('executors')
    .innerJoin('providers', 'providers.id', 'executors.provider_id')
    .select(['executors.id', 'ip_address', 'port', 'first_verified_at', 'gpu_type', 'gpu_count'])
    .select(['slots_total', 'price_uusd_per_gpu_hour', 'collateral_deposited', 'reachable_since'])
    .select(['providers.hotkey as miner_hotkey', 'providers.banned_at'])
    .select('providers.chat_user_id')
    .where('state', '<>', 'removed')
    .orderBy('executors.created_at')
    .orderBy('executors.id')
    .execute();
}

/** A provider's executors except removed ones, sorted by id. */
export async function listOfProvider(db: Db, providerId: string): Promise<ExecutorEntry[]> {
  return entries(db)
    .where('provider_id', '=', providerId)
    .where('state', '<>', 'removed')
    .orderBy('executors.id')
    .execute();
}

export type ProviderPage = { items: ExecutorEntry[]; total: number };

/** Newest first. A null `hotkey` selects every provider. */
export async function pageOfProvider(
  db: Db,
  hotkey: string | null,
  { page, limit }: { page: number; limit: number },
): Promise<ProviderPage> {
  let query = entries(db).where('state', '<>', 'removed');
  let count = db
    .selectFrom('executors')
    .innerJoin('providers', 'providers.id', 'executors.provider_id')
    .select((eb) => eb.fn.countAll<number>().as('n'))
    .where('state', '<>', 'removed');
  if (hotkey !== null) {
    query = query.where('providers.hotkey', '=', hotkey);
    count = count.where('providers.hotkey', '=', hotkey);
  }
  const items = await query
    .orderBy('executors.created_at', 'desc')
    .orderBy('executors.id')
    .limit(limit)
    .offset((page - 1) * limit)
    .execute();
  return { items, total: (await count.executeTakeFirstOrThrow()).n };
}

export async function hasVerifiedNode(db: Db, providerId: string): Promise<boolean> {
  const found = await db
    .selectFrom('executors')
    .select('id')
    .where('provider_id', '=', providerId)
    .where('state', '=', 'verified')
    .limit(1)
    .executeTakeFirst();
  return found !== undefined;
}

/** Number of a provider's executors that never passed a check, except removed ones. */
export async function countUnproven(db: Db, providerId: string): Promise<number> {
  const row = await db
    .selectFrom('executors')
    .select((eb) => eb.fn.countAll<number>().as('n'))
    .where('provider_id', '=', providerId)
    .where('state', '<>', 'removed')
    .where('first_verified_at', 'is', null)
    .executeTakeFirstOrThrow();
  return row.n;
}

/** Returns false if the address belongs to an executor that is not removed. */
export async function insertExecutor(db: Db, row: NewExecutor): Promise<boolean> {
  const done = await db
    .insertInto('executors')
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst();
  return (done.numInsertedOrUpdatedRows ?? 0n) > 0n;
}

/** Time at which an agent answered. */
export type SeenExecutor = { id: string; seen_at: number };

/** Shortest time between two writes of `last_seen_at`, because the rows are long. */
const SEEN_RESOLUTION_MS = 30_000;

const storeSeen = prepared((db, { given, ids }: Slots<{ given: string; ids: string }>) =>
  db
    .updateTable('executors')
    .from(jsonRows(db, given, { id: 'text', seen_at: 'bigint' }).as('seen'))
    .set({ last_seen_at: sql<number>`seen.seen_at` })
    .where(isAmongJoined(db, 'executors.id', ids))
    .whereRef('executors.id', '=', 'seen.id')
    .where('state', '<>', REMOVED)
    .where(
      sql<SqlBool>`coalesce(executors.last_seen_at, 0) <= seen.seen_at - ${sql.lit(SEEN_RESOLUTION_MS)}`,
    ),
);

/** Stores the times of rows that no other transaction has locked, at most once in SEEN_RESOLUTION_MS. */
export async function storeSeenExecutors(tx: Db, seen: readonly SeenExecutor[]): Promise<void> {
  const free = await lockFreeRows(
    tx,
    'executors',
    seen.map(({ id }) => id),
  );
  const given = seen.filter(({ id }) => free.has(id));
  if (given.length === 0) return;
  await storeSeen(tx, {
    given: JSON.stringify(given),
    ids: idsJson(given.map(({ id }) => id)),
  });
}

const change = preparedEach((db, { targetId }: Slots<{ targetId: string }>, columns) =>
  db.updateTable('executors').set(columns).where('id', '=', targetId).where('state', '<>', REMOVED),
);

/** Changes an executor that is not removed. Returns false if there is none. */
export async function updateExecutor(
  db: Db,
  id: string,
  columns: Updateable<ExecutorsTable>,
): Promise<boolean> {
  const { numAffectedRows = 0n } = await change(db, columns, { targetId: id });
  return numAffectedRows > 0n;
}
