/** Queries on top-ups (one row per charge) and on auto top-ups (one row per account). */
import { type Insertable, sql, type Updateable } from 'kysely';
import { dueRows } from '../../platform/database/due-rows.ts';
import { idsJson, isAmong, prepared, type Slots } from '../../platform/database/prepared.ts';
import type { AutoTopUpsTable, TopUpsTable } from '../../platform/database/tables/money.ts';
import type { AutoTopUpRow, Db, TopUpRow } from '../../platform/database/tables.ts';
import { IN_FLIGHT } from './top-up.state.ts';

/** Charges in flight, for the job that queries the processor. */
export const topUpsInFlight = dueRows('topups', IN_FLIGHT);

export async function insertTopUp(db: Db, row: Insertable<TopUpsTable>): Promise<void> {
  await db.insertInto('topups').values(row).execute();
}

export function findTopUp(db: Db, id: string): Promise<TopUpRow | undefined> {
  return db.selectFrom('topups').selectAll().where('id', '=', id).executeTakeFirst();
}

/** Finds a charge by the processor's id. */
export function findTopUpByExternal(db: Db, externalId: string): Promise<TopUpRow | undefined> {
  return db
    .selectFrom('topups')
    .selectAll()
    .where('external_id', '=', externalId)
    .executeTakeFirst();
}

/** Updates a charge. Returns false if it has changed since `row` was read. */
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

/** Returns true if a charge of that payment method was disputed. */
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

/**
 * Micro-dollars of an account's charges that succeeded after `sinceMs`, minus returned amounts. The payer may still
 * dispute these charges.
 */
export async function disputableCredit(
  db: Db,
  accountId: string,
  sinceMs: number,
): Promise<number> {
  const row = await db
    .selectFrom('topups')
    .select(sql<number>`coalesce(sum(amount_uusd - refunded_uusd - disputed_uusd), 0)`.as('uusd'))
    .where('account_id', '=', accountId)
    .where('state', '=', 'succeeded')
    .where('updated_at', '>', sinceMs)
    .executeTakeFirstOrThrow();
  return Number(row.uusd);
}

const byAccount = prepared((db, { accountId }: Slots<{ accountId: string }>) =>
  db.selectFrom('auto_topups').selectAll().where('account_id', '=', accountId),
);

/** Returns undefined if the account never configured an auto top-up. */
export async function findAutoTopUp(db: Db, accountId: string): Promise<AutoTopUpRow | undefined> {
  return (await byAccount(db, { accountId })).rows[0];
}

const enabled = prepared((db, { rows }: Slots<{ rows: string }>) =>
  db
    .selectFrom('auto_topups')
    .selectAll()
    .where(isAmong(db, 'account_id', rows))
    .where('enabled', '=', 1)
    .orderBy('account_id'),
);

/** Enabled auto top-ups of these accounts. Runs after every spend. */
export async function listEnabled(db: Db, accountIds: readonly string[]): Promise<AutoTopUpRow[]> {
  return (await enabled(db, { rows: idsJson(accountIds) })).rows;
}

/** Inserts an auto top-up or replaces all its settings. */
export async function upsertAutoTopUp(db: Db, row: AutoTopUpRow): Promise<void> {
  const { account_id: _, id: __, created_at: ___, ...changes } = row;
  await db
    .insertInto('auto_topups')
    .values(row)
    .onConflict((conflict) => conflict.column('account_id').doUpdateSet(changes))
    .execute();
}

/** Marks the start of a charge. Returns false if the auto top-up has changed since `row` was read. */
export async function claimCharge(db: Db, row: AutoTopUpRow, nowMs: number): Promise<boolean> {
  const done = await db
    .updateTable('auto_topups')
    .set({ status: 'charging', last_attempt_at: nowMs })
    .where('account_id', '=', row.account_id)
    .where('enabled', '=', 1)
    .where('status', '=', row.status)
    .where('updated_at', '=', row.updated_at)
    .executeTakeFirst();
  return done.numUpdatedRows > 0n;
}

export async function updateAutoTopUp(
  db: Db,
  accountId: string,
  changes: Updateable<AutoTopUpsTable>,
): Promise<void> {
  await db.updateTable('auto_topups').set(changes).where('account_id', '=', accountId).execute();
}

export async function deleteAutoTopUp(db: Db, accountId: string): Promise<void> {
  await db.deleteFrom('auto_topups').where('account_id', '=', accountId).execute();
}

const charges = prepared(
  (db, { accountId, sinceMs }: Slots<{ accountId: string; sinceMs: number }>) =>
    db
      .selectFrom('topups')
      .select(sql<number>`coalesce(sum(amount_uusd), 0)`.as('charged'))
      .where('account_id', '=', accountId)
      .where('created_at', '>=', sinceMs)
      .where('state', '<>', 'declined'),
);

/** Micro-dollars of charges since then that were not declined, including unanswered charges. */
export async function chargedSince(db: Db, accountId: string, sinceMs: number): Promise<number> {
  const [row] = (await charges(db, { accountId, sinceMs })).rows;
  return Number(row?.charged ?? 0);
}
