/** Queries of the machine_requests table. */

import type { Updateable } from 'kysely';
import type { MachineRequestsTable } from '../../platform/database/tables/market.ts';
import type { Db, MachineRequest } from '../../platform/database/tables.ts';
import { type MachineRequestState, sourcesOf } from './machine-request.state.ts';
import type { RequestGroup } from './request-aggregate.ts';

/** Columns that describe the requested machine. */
const MACHINE_COLUMNS = [
  'gpu_class',
  'gpu_count',
  'budget_uusd_per_hour',
  'country',
  'min_vram_gb',
] as const;

export async function insertMachineRequest(db: Db, row: MachineRequest): Promise<void> {
  await db.insertInto('machine_requests').values(row).execute();
}

export function findMachineRequest(db: Db, id: string): Promise<MachineRequest | undefined> {
  return db.selectFrom('machine_requests').selectAll().where('id', '=', id).executeTakeFirst();
}

/** Lists an account's requests in every state, oldest first. */
export function listMachineRequests(db: Db, accountId: string): Promise<MachineRequest[]> {
  return db
    .selectFrom('machine_requests')
    .selectAll()
    .where('account_id', '=', accountId)
    .orderBy('created_at')
    .orderBy('id')
    .execute();
}

/** Finds the account's oldest pending request for the same machine; notes are not compared. */
export function findPendingLike(
  db: Db,
  wanted: MachineRequest,
): Promise<MachineRequest | undefined> {
  let query = pending(db).selectAll().where('account_id', '=', wanted.account_id);
  for (const column of MACHINE_COLUMNS) {
    const value = wanted[column];
    query = value === null ? query.where(column, 'is', null) : query.where(column, '=', value);
  }
  return query.orderBy('created_at').orderBy('id').limit(1).executeTakeFirst();
}

export async function countPending(db: Db, accountId: string): Promise<number> {
  const row = await db
    .selectFrom('machine_requests')
    .select((eb) => eb.fn.countAll<number>().as('n'))
    .where('account_id', '=', accountId)
    .where('state', '=', 'pending')
    .executeTakeFirstOrThrow();
  return row.n;
}

/** Changes the state and returns true; returns false if the transition is not permitted. */
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

/** Deletes an account's closed requests except the `max` that changed last. */
export async function deleteOldClosed(db: Db, accountId: string, max: number): Promise<void> {
  const latest = db
    .selectFrom('machine_requests')
    .select('id')
    .where('account_id', '=', accountId)
    .where('state', '<>', 'pending')
    .orderBy('updated_at', 'desc')
    .orderBy('id')
    .limit(max);
  await db
    .deleteFrom('machine_requests')
    .where('account_id', '=', accountId)
    .where('state', '<>', 'pending')
    .where('id', 'not in', latest)
    .execute();
}

/** Cancels the pending requests of an account that is being deleted, and clears the notes of all its requests. */
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

/** Lists an account's fulfilled requests with their nodes, oldest first. */
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

/** Returns one page of the pending requests of all accounts, oldest first. */
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

/** Lists pending requests for at most `gpus` GPUs, oldest first. */
export function listPendingUpTo(db: Db, gpus: number, limit: number): Promise<MachineRequest[]> {
  return pending(db)
    .selectAll()
    .where((eb) => eb.or([eb('gpu_count', 'is', null), eb('gpu_count', '<=', gpus)]))
    .orderBy('created_at')
    .orderBy('id')
    .limit(limit)
    .execute();
}

/** Counts pending requests by GPU class, GPU count and budget. */
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
