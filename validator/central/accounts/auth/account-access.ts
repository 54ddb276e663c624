/** The account that a request is of, or that something is done for: it may have been deleted meanwhile. */
import { ApiError } from '#shared/runtime/errors.ts';
import type { Account, Db } from '../../platform/database/tables.ts';
import { lockRow } from '../../platform/database/transactions.ts';
import type { UserIdentity } from '../../platform/identity.ts';
import { findAccount } from './account-access.store.ts';

type Caller = Pick<UserIdentity, 'accountId'>;

/** The account with this id; undefined for one that is gone. */
export const accountById = findAccount;

/** Where mails to the account go; null for one that is gone. */
export async function addressOf(db: Db, accountId: string): Promise<string | null> {
  return (await findAccount(db, accountId))?.email ?? null;
}

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
