/** PUT /users/me/referral-payout-method: sets how an account receives its referral shares. */

import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Account, Database, Db } from '../../platform/database/tables.ts';
import type { Actor, UserIdentity } from '../../platform/identity.ts';
import { accountById, accountOf } from '../auth/account-access.ts';
import type { ReferralPayoutMethodUpdateDto, User } from './account.schemas.ts';
import type { Accounts } from './account.service.ts';
import { updateAccount } from './account.store.ts';
import { recordAccountEvent } from './account-event.ts';

export type ReferralPayoutDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  accounts: Pick<Accounts, 'me'>;
  /** Throws `bad_request` if the caller cannot be paid by `stripe_connect`. */
  requireOnboarded(caller: UserIdentity): Promise<void>;
};
export type SetReferralPayout = ReturnType<typeof createReferralPayout>;

/** Returns the function that sets the method. Throws `bad_request` for a method that cannot be used. */
export function createReferralPayout(deps: ReferralPayoutDeps) {
  const { db, clock, random, accounts, requireOnboarded } = deps;
  return async (
    caller: UserIdentity,
    body: ReferralPayoutMethodUpdateDto,
    actor: Actor,
  ): Promise<User> => {
    const changes = { ...changesOf(body), updated_at: clock.now() };
    // Runs before the transaction, because the check may call the payment processor.
    if (body.referral_payout_method === 'stripe_connect') await requireOnboarded(caller);
    await db.transaction().execute(async (tx) => {
      const before = await accountOf(tx, caller);
      await updateAccount(tx, before.id, changes);
      const detail = `referrals are paid by ${body.referral_payout_method}`;
      await recordAccountEvent(tx, { clock, random }, before.id, actor, detail);
    });
    return accounts.me(caller);
  };
}

function changesOf(body: ReferralPayoutMethodUpdateDto): Partial<Account> {
  const { referral_payout_method: method, crypto_address, crypto_network } = body;
  if (method !== 'crypto') {
    return {
      referral_payout_method: method,
      referral_crypto_address: null,
      referral_crypto_network: null,
    };
  }
  if (crypto_address === undefined || crypto_network === undefined) {
    throw new ApiError('bad_request', 'Payouts by crypto need crypto_address and crypto_network');
  }
  return {
    referral_payout_method: method,
    referral_crypto_address: crypto_address,
    referral_crypto_network: crypto_network,
  };
}

/** Returns the destination of an account's payouts; null if the account is deleted or has no usable method. */
export async function referralDestination(db: Db, accountId: string) {
  const account = await accountById(db, accountId);
  const method = account?.referral_payout_method;
  if (method === 'balance') return { method, address: accountId, network: null };
  if (method === 'stripe_connect') {
    const { payout_account_id: address = null, payout_onboarded_at: at = null } = account ?? {};
    return address === null || at === null ? null : { method, address, network: null };
  }
  const address = account?.referral_crypto_address ?? null;
  if (method !== 'crypto' || address === null) return null;
  return { method, address, network: account?.referral_crypto_network ?? null };
}
