/** Queries on low-balance thresholds, and on the notifications that accounts have received. */
import { idsJson, isAmong, prepared, type Slots } from '../../platform/database/prepared.ts';
import type {
  Db,
  LowBalanceMarks,
  LowBalanceThresholdRow,
} from '../../platform/database/tables.ts';

/** Returns undefined for an account that uses the defaults. */
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

/** Inserts `fresh`, or applies `changes` to the row that exists. Returns the resulting row. */
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

/** Prepared, because this query runs after every spend. */
const watched = prepared((db, { rows }: Slots<{ rows: string }>) =>
  db
    .selectFrom('accounts')
    .leftJoin('low_balance_thresholds as own', 'own.account_id', 'accounts.id')
    .leftJoin('low_balance_marks as marks', 'marks.account_id', 'accounts.id')
    .select([
      'accounts.id',
      'accounts.email',
      'own.threshold_uusd',
      'own.runway_minutes',
      'marks.told_of_amount',
      'marks.told_of_runway',
    ])
    .where(isAmong(db, 'accounts.id', rows))
    .where('accounts.deleted_at', 'is', null)
    .orderBy('accounts.id'),
);

/** An account with its thresholds and the notifications that it has received. */
export type WatchedAccount = Awaited<ReturnType<typeof watchedAccounts>>[number];

/** Omits deleted accounts. */
export async function watchedAccounts(db: Db, accountIds: readonly string[]) {
  return (await watched(db, { rows: idsJson(accountIds) })).rows;
}

/** Records the thresholds of which an account has been notified. */
export async function upsertMarks(db: Db, row: LowBalanceMarks): Promise<void> {
  const { account_id: _, ...changes } = row;
  await db
    .insertInto('low_balance_marks')
    .values(row)
    .onConflict((conflict) => conflict.column('account_id').doUpdateSet(changes))
    .execute();
}

/** Clears the record of thresholds of which an account has been notified. */
export async function deleteMarks(db: Db, accountId: string): Promise<void> {
  await db.deleteFrom('low_balance_marks').where('account_id', '=', accountId).execute();
}

export async function deleteThreshold(db: Db, accountId: string): Promise<void> {
  await db.deleteFrom('low_balance_thresholds').where('account_id', '=', accountId).execute();
}
