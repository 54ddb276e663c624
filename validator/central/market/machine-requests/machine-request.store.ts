/** Queries of the machine_requests table. */

import type { Updateable } from 'kysely';
import type { MachineRequestsTable } from '../../platform/database/tables/market.ts';
import type { Db, MachineRequest } from '../../platform/database/tables.ts';
import { type MachineRequestState, sourcesOf } from './machine-request.state.ts';
import type { RequestGroup } from './request-bands.ts';

/** What a request asks for. */
const WISHES = [
  'gpu_class',
  'gpu_count',
  'budget_uusd_per_hour',
  'country',
  'min_vram_gb',
] as const;

/** Stores a new one. */
export async function insertMachineRequest(db: Db, row: MachineRequest): Promise<void> {
  await db.insertInto('machine_requests').values(row).execute();
}

/** By id, of whatever account. */
export function findMachineRequest(db: Db, id: string): Promise<MachineRequest | undefined> {
  return db.selectFrom('machine_requests').selectAll().where('id', '=', id).executeTakeFirst();
}

/** In every state, oldest first. */
export function listMachineRequests(db: Db, accountId: string): Promise<MachineRequest[]> {
  return db
    .selectFrom('machine_requests')
    .selectAll()
    .where('account_id', '=', accountId)
    .orderBy('created_at')
    .orderBy('id')
    .execute();
}

/** An open one of the account that asks for the same, whatever its notes; the oldest. */
export function findPendingLike(
  db: Db,
  wanted: MachineRequest,
): Promise<MachineRequest | undefined> {
  let query = pending(db).selectAll().where('account_id', '=', wanted.account_id);
  for (const column of WISHES) {
    const wish = wanted[column];
    query = wish === null ? query.where(column, 'is', null) : query.where(column, '=', wish);
  }
  return query.orderBy('created_at').orderBy('id').limit(1).executeTakeFirst();
}

/** How many of an account are still open. */
export async function countPending(db: Db, accountId: string): Promise<number> {
  const row = await db
    .selectFrom('machine_requests')
    .select((eb) => eb.fn.countAll<number>().as('n'))
    .where('account_id', '=', accountId)
    .where('state', '=', 'pending')
    .executeTakeFirstOrThrow();
  return row.n;
}

/** Makes a move of the state table; false when the request is in no state to make it from. */
export async function moveMachineRequest(
  db: Db,
  id: string,
  to: MachineRequestState,
  change: Omit<Updateable<MachineRequestsTable>, 'state'>,
): Promise<boolean> {
  const done = await db
    .updateTable('machine_requests')
    .set({ ...change, state: to })
    .where('id', '=', id)
    .where('state', 'in', sourcesOf(to))
    .executeTakeFirst();
  return done.numUpdatedRows > 0n;
}

/** Removes an account's closed ones but for the `kept` that were changed last. */
export async function dropOldClosed(db: Db, accountId: string, kept: number): Promise<void> {
  const latest = db
    .selectFrom('machine_requests')
    .select('id')
    .where('account_id', '=', accountId)
    .where('state', '<>', 'pending')
    .orderBy('updated_at', 'desc')
    .orderBy('id')
    .limit(kept);
  await db
    .deleteFrom('machine_requests')
    .where('account_id', '=', accountId)
    .where('state', '<>', 'pending')
    .where('id', 'not in', latest)
    .execute();
}

/** Closes what is open of an account that ends, and clears what its people wrote. */
export async function clearMachineRequestsOf(
  db: Db,
  accountId: string,
  nowMs: number,
): Promise<void> {
  await db
    .updateTable('machine_requests')
    .set({ state: 'cancelled', updated_at: nowMs })
    .where('account_id', '=', accountId)
    .where('state', 'in', sourcesOf('cancelled'))
    .execute();
  await db
    .updateTable('machine_requests')
    .set({ notes: null, notify: 0 })
    .where('account_id', '=', accountId)
    .execute();
}

/** Pairs of node and request of an account, oldest first. */
export function listFulfilled(
  db: Db,
  accountId: string,
): Promise<{ id: string; fulfilled_executor_id: string | null }[]> {
  return db
    .selectFrom('machine_requests')
    .select(['id', 'fulfilled_executor_id'])
    .where('account_id', '=', accountId)
    .where('state', '=', 'fulfilled')
    .orderBy('created_at')
    .orderBy('id')
    .execute();
}

/** Open ones of everybody, oldest first. */
export async function pageOfPending(
  db: Db,
  { page, limit }: { page: number; limit: number },
): Promise<{ rows: MachineRequest[]; total: number }> {
  const rows = await pending(db)
    .selectAll()
    .orderBy('created_at')
    .orderBy('id')
    .limit(limit)
    .offset((page - 1) * limit)
    .execute();
  const counted = await pending(db)
    .select((eb) => eb.fn.countAll<number>().as('n'))
    .executeTakeFirstOrThrow();
  return { rows, total: counted.n };
}

/** Those that so many GPUs are enough for, oldest first. */
export function listPendingUpTo(db: Db, gpus: number, limit: number): Promise<MachineRequest[]> {
  return pending(db)
    .selectAll()
    .where((eb) => eb.or([eb('gpu_count', 'is', null), eb('gpu_count', '<=', gpus)]))
    .orderBy('created_at')
    .orderBy('id')
    .limit(limit)
    .execute();
}

/** How many ask for the same. */
export function groupPending(db: Db): Promise<RequestGroup[]> {
  return pending(db)
    .select((eb) => [
      'gpu_class',
      'gpu_count',
      'budget_uusd_per_hour',
      eb.fn.countAll<number>().as('count'),
    ])
    .groupBy(['gpu_class', 'gpu_count', 'budget_uusd_per_hour'])
    .execute();
}

function pending(db: Db) {
  return db.selectFrom('machine_requests').where('state', '=', 'pending');
}
