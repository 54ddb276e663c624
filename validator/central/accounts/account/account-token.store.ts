/** Queries of the account_tokens table. */

import type { Insertable, Selectable } from 'kysely';
import type { AccountTokensTable } from '../../platform/database/tables/accounts.ts';
import type { Db } from '../../platform/database/tables.ts';

export type AccountToken = Selectable<AccountTokensTable>;
export type TokenPurpose = AccountToken['purpose'];

export async function insertAccountToken(
  db: Db,
  row: Insertable<AccountTokensTable>,
): Promise<void> {
  await db.insertInto('account_tokens').values(row).execute();
}

/** Finds a token without using it. */
export function findAccountToken(
  db: Db,
  purpose: TokenPurpose,
  hash: string,
): Promise<AccountToken | undefined> {
  return db
    .selectFrom('account_tokens')
    .selectAll()
    .where('token_hash', '=', hash)
    .where('purpose', '=', purpose)
    .executeTakeFirst();
}

/** Deletes and returns a token, so that only one caller can use it. */
export function useAccountToken(
  db: Db,
  purpose: TokenPurpose,
  hash: string,
): Promise<AccountToken | undefined> {
  return db
    .deleteFrom('account_tokens')
    .where('token_hash', '=', hash)
    .where('purpose', '=', purpose)
    .returningAll()
    .executeTakeFirst();
}

/** Deletes an account's tokens for these purposes. */
export async function deleteAccountTokens(
  db: Db,
  accountId: string,
  purposes: readonly TokenPurpose[],
): Promise<void> {
  await db
    .deleteFrom('account_tokens')
    .where('account_id', '=', accountId)
    .where('purpose', 'in', purposes)
    .execute();
}

export async function deleteExpiredTokens(db: Db, nowMs: number): Promise<void> {
  await db.deleteFrom('account_tokens').where('expires_at', '<=', nowMs).execute();
}
