/** Finds and locks accounts by id. Deleted accounts are never found. */
import { ApiError } from '#shared/runtime/errors.ts';
import { prepared, type Slots } from '../../platform/database/prepared.ts';
import type { Account, Db } from '../../platform/database/tables.ts';
import { lockRow } from '../../platform/database/transactions.ts';
import type { UserIdentity } from '../../platform/identity.ts';

type Caller = Pick<UserIdentity, 'accountId'>;

const byId = prepared((db, { id }: Slots<{ id: string }>) =>
  db.selectFrom('accounts').selectAll().where('id', '=', id).where('deleted_at', 'is', null),
);

export async function accountById(db: Db, id: string): Promise<Account | undefined> {
  return (await byId(db, { id })).rows[0];
}

/** Returns the account's mail address; null if the account is deleted. */
export async function addressOf(db: Db, accountId: string): Promise<string | null> {
  return (await accountById(db, accountId))?.email ?? null;
}

/** Returns the caller's row. Throws `unauthorized` if the account was deleted during the request. */
export async function accountOf(db: Db, caller: Caller): Promise<Account> {
  const account = await accountById(db, caller.accountId);
  if (account === undefined) throw new ApiError('unauthorized', 'This account is deleted');
  return account;
}

/**
 * Returns the same row as `accountOf`, locked until the transaction ends. Call it before inserting a row for an
 * account. Otherwise a concurrent deletion of the account could leave the row behind.
 */
export async function lockAccount(tx: Db, caller: Caller): Promise<Account> {
  await lockRow(tx, 'accounts', caller.accountId);
  return accountOf(tx, caller);
}
