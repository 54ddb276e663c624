/** Queries of the topups table. */

import { type Insertable, sql, type Updateable } from 'kysely';
import { dueRows } from '../../platform/database/due-rows.ts';
import type { TopUpsTable } from '../../platform/database/tables/money.ts';
import type { Db, TopUpRow } from '../../platform/database/tables.ts';
import { IN_FLIGHT } from './top-up.state.ts';

/** Charges in flight, about which the processor is to be asked. */
export const topUpsInFlight = dueRows('topups', IN_FLIGHT);

/** Stores a new charge. */
export async function insertTopUp(db: Db, row: Insertable<TopUpsTable>): Promise<void> {
  await db.insertInto('topups').values(row).execute();
}

/** By its id. */
export function findTopUp(db: Db, id: string): Promise<TopUpRow | undefined> {
  return db.selectFrom('topups').selectAll().where('id', '=', id).executeTakeFirst();
}

/** By the processor's id. */
export function findTopUpByExternal(db: Db, externalId: string): Promise<TopUpRow | undefined> {
  return db
    .selectFrom('topups')
    .selectAll()
    .where('external_id', '=', externalId)
    .executeTakeFirst();
}

/** Changes one that still is as it was read; false when it is not. */
export async function changeTopUp(
  db: Db,
  row: TopUpRow,
  changes: Updateable<TopUpsTable>,
): Promise<boolean> {
  const done = await db
    .updateTable('topups')
    .set(changes)
    .where('id', '=', row.id)
    .where('state', '=', row.state)
    .where('refunded_uusd', '=', row.refunded_uusd)
    .where('disputed_uusd', '=', row.disputed_uusd)
    .executeTakeFirst();
  return done.numUpdatedRows > 0n;
}

/** Whether a charge of that method was disputed. */
export async function hasDisputed(db: Db, accountId: string, methodId: string): Promise<boolean> {
  const row = await db
    .selectFrom('topups')
    .select('id')
    .where('account_id', '=', accountId)
    .where('payment_method_id', '=', methodId)
    .where('disputed_uusd', '>', 0)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/** Micro-dollars of an account's charges that succeeded, or were changed, after then, less what of them went back. */
export async function succeededSince(db: Db, accountId: string, sinceMs: number): Promise<number> {
  const row = await db
    .selectFrom('topups')
    .select(sql<number>`coalesce(sum(amount_uusd - refunded_uusd - disputed_uusd), 0)`.as('uusd'))
    .where('account_id', '=', accountId)
    .where('state', '=', 'succeeded')
    .where('updated_at', '>', sinceMs)
    .executeTakeFirstOrThrow();
  return Number(row.uusd);
}
