/** Queries of the auto_topups table, and what the top-ups of a month come to. */
import { sql, type Updateable } from 'kysely';
import { jsonRows, prepared, type Slots } from '../../platform/database/prepared.ts';
import type { AutoTopUpsTable } from '../../platform/database/tables/money.ts';
import type { AutoTopUpRow, Db } from '../../platform/database/tables.ts';

const byAccount = prepared((db, { accountId }: Slots<{ accountId: string }>) =>
  db.selectFrom('auto_topups').selectAll().where('account_id', '=', accountId),
);

/** Undefined where it was never set. */
export async function findAutoTopUp(db: Db, accountId: string): Promise<AutoTopUpRow | undefined> {
  return (await byAccount(db, { accountId })).rows[0];
}

const enabled = prepared((db, { rows }: Slots<{ rows: string }>) =>
  db
    .selectFrom('auto_topups')
    .selectAll()
    .where('account_id', 'in', (eb) =>
      eb.selectFrom(jsonRows(db, rows, { id: 'text' }).as('given')).select('id'),
    )
    .where('enabled', '=', 1)
    .orderBy('account_id'),
);

/** Of these accounts, those that are switched on; it is asked after every spend. */
export async function listEnabled(db: Db, accountIds: readonly string[]): Promise<AutoTopUpRow[]> {
  return (await enabled(db, { rows: JSON.stringify(accountIds.map((id) => ({ id }))) })).rows;
}

/** Stores it, or all of it anew. */
export async function upsertAutoTopUp(db: Db, row: AutoTopUpRow): Promise<void> {
  const { account_id: _, id: __, created_at: ___, ...changes } = row;
  await db
    .insertInto('auto_topups')
    .values(row)
    .onConflict((conflict) => conflict.column('account_id').doUpdateSet(changes))
    .execute();
}

/** Notes that a charge begins; false when one is under way, or it may not begin any more. */
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

/** Changes that of an account, if there is one. */
export async function updateAutoTopUp(
  db: Db,
  accountId: string,
  changes: Updateable<AutoTopUpsTable>,
): Promise<void> {
  await db.updateTable('auto_topups').set(changes).where('account_id', '=', accountId).execute();
}

/** That of an account. */
export async function deleteAutoTopUp(db: Db, accountId: string): Promise<void> {
  await db.deleteFrom('auto_topups').where('account_id', '=', accountId).execute();
}

/** Micro-dollars of charges since then that were not declined, those without an answer included. */
export async function chargedSince(db: Db, accountId: string, sinceMs: number): Promise<number> {
  const row = await db
    .selectFrom('topups')
    .select(sql<number>`coalesce(sum(amount_uusd), 0)`.as('charged'))
    .where('account_id', '=', accountId)
    .where('created_at', '>=', sinceMs)
    .where('state', '<>', 'declined')
    .executeTakeFirstOrThrow();
  return Number(row.charged);
}
