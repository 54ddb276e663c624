/** The account that a request is of, which may have been deleted since the request was let in. */
import { ApiError } from '#shared/errors.ts';
import type { UserIdentity } from '../auth/identity.ts';
import { lockRow } from '../db/row-lock.ts';
import type { Account, Db } from '../db/tables.ts';
import { findAccount } from './account.store.ts';

type Caller = Pick<UserIdentity, 'accountId'>;

/** The caller's row. Throws `unauthorized` for an account that was deleted while the request was under way. */
export async function accountOf(db: Db, caller: Caller): Promise<Account> {
  const account = await findAccount(db, caller.accountId);
  if (account === undefined) throw new ApiError('unauthorized', 'This account is deleted');
  return account;
}

/**
 * The same, held until the transaction ends: for everything that is written for an account, so that its deletion leaves
 * nothing of it behind.
 */
export async function holdAccount(tx: Db, caller: Caller): Promise<Account> {
  await lockRow(tx, 'accounts', caller.accountId);
  return accountOf(tx, caller);
}
