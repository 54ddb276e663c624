/** Queries of the low-balance tables: thresholds of accounts, and what each was told of. */
import type { LowBalanceMarks, LowBalanceThresholdRow } from '../db/around-balance.tables.ts';
import { prepared, type Slots } from '../db/prepared.ts';
import type { Db } from '../db/tables.ts';

/** Undefined where the account never changed anything. */
export function findThreshold(
  db: Db,
  accountId: string,
): Promise<LowBalanceThresholdRow | undefined> {
  return db
    .selectFrom('low_balance_thresholds')
    .selectAll()
    .where('account_id', '=', accountId)
    .executeTakeFirst();
}

/** Stores `fresh`, or changes what is there by `changes` alone; returns what came of it. */
export function upsertThreshold(
  db: Db,
  fresh: LowBalanceThresholdRow,
  changes: Partial<LowBalanceThresholdRow>,
): Promise<LowBalanceThresholdRow> {
  return db
    .insertInto('low_balance_thresholds')
    .values(fresh)
    .onConflict((conflict) => conflict.column('account_id').doUpdateSet(changes))
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** What decides whether an account is told something; it is asked after every spend. */
const watched = prepared((db, { accountId }: Slots<{ accountId: string }>) =>
  db
    .selectFrom('accounts')
    .leftJoin('low_balance_thresholds as own', 'own.account_id', 'accounts.id')
    .leftJoin('low_balance_marks as marks', 'marks.account_id', 'accounts.id')
    .select([
      'accounts.email',
      'own.threshold_uusd',
      'own.runway_minutes',
      'marks.told_of_amount',
      'marks.told_of_runway',
    ])
    .where('accounts.id', '=', accountId)
    .where('accounts.deleted_at', 'is', null),
);

/** Undefined for an account that is gone. */
export async function watchedAccount(db: Db, accountId: string) {
  return (await watched(db, { accountId })).rows[0];
}

/** Notes what an account was told of. */
export async function upsertMarks(db: Db, row: LowBalanceMarks): Promise<void> {
  const { account_id: _, ...changes } = row;
  await db
    .insertInto('low_balance_marks')
    .values(row)
    .onConflict((conflict) => conflict.column('account_id').doUpdateSet(changes))
    .execute();
}

/** As if it was never told anything. */
export async function deleteMarks(db: Db, accountId: string): Promise<void> {
  await db.deleteFrom('low_balance_marks').where('account_id', '=', accountId).execute();
}

/** The account's own thresholds. */
export async function deleteThreshold(db: Db, accountId: string): Promise<void> {
  await db.deleteFrom('low_balance_thresholds').where('account_id', '=', accountId).execute();
}
