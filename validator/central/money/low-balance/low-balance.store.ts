/** Queries of the low-balance tables: thresholds of accounts, and what each was told of. */
import { jsonRows, prepared, type Slots } from '../../platform/database/prepared.ts';
import type {
  Db,
  LowBalanceMarks,
  LowBalanceThresholdRow,
} from '../../platform/database/tables.ts';

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

/** What decides whether accounts are told something; it is asked after every spend. */
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
    .where('accounts.id', 'in', (eb) =>
      eb.selectFrom(jsonRows(db, rows, { id: 'text' }).as('given')).select('id'),
    )
    .where('accounts.deleted_at', 'is', null)
    .orderBy('accounts.id'),
);

/** An account, its own thresholds and what it was told of. */
export type WatchedAccount = Awaited<ReturnType<typeof watchedAccounts>>[number];

/** Of these accounts, those that are there. */
export async function watchedAccounts(db: Db, accountIds: readonly string[]) {
  return (await watched(db, { rows: JSON.stringify(accountIds.map((id) => ({ id }))) })).rows;
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
