/** Converts an account to the wire type `User`, with its balance and links to other modules. */

import { microToUsd } from '#shared/api/money.ts';
import { naiveUtc } from '#shared/runtime/clock.ts';
import type { Account, Db } from '../../platform/database/tables.ts';
import type { User } from './account.schemas.ts';
import type { AccountBalance, AccountPorts } from './account-ports.ts';

/** Returns the function that converts an account's row to `User` and queries its balance and links. */
export function createAccountView(
  db: Db,
  ports: Pick<AccountPorts, 'balanceOf' | 'earnedByReferrals' | 'validators'>,
) {
  return async (account: Account): Promise<User> =>
    toUser({
      account,
      balance: await ports.balanceOf(db, account.id),
      validatorHotkey: await ports.validators.hotkeyOf(db, account.id),
      referralUusd: await ports.earnedByReferrals(db, account.id),
    });
}

export type ShownAccount = {
  account: Account;
  balance: AccountBalance;
  validatorHotkey: string | null;
  /** Micro-dollars of referral earnings that have not been paid out. */
  referralUusd: number;
};

/** Fields of features that this marketplace does not offer (workspaces) are null or false. Pure. */
export function toUser({ account, balance, validatorHotkey, referralUusd }: ShownAccount): User {
  const available = balance.posted - balance.held;
  return {
    id: account.id,
    name: account.name,
    email: account.email,
    balance: microToUsd(balance.posted),
    unposted: microToUsd(balance.unposted),
    held: microToUsd(balance.held),
    available: microToUsd(available),
    burn_per_hour: microToUsd(balance.burnPerHour),
    runs_out_at: balance.runsOutAtMs === null ? null : naiveUtc(balance.runsOutAtMs),
    stripe_customer_id: account.payment_customer_id,
    stripe_connect_account_id: account.payout_account_id,
    stripe_onboarding_completed: account.payout_onboarded_at !== null,
    referral_payout_method: account.referral_payout_method,
    pending_referral_balance: microToUsd(referralUusd),
    email_verified: account.email_verified_at !== null,
    discord_id: account.chat_user_id,
    disable_incoming_connections: account.disable_incoming_connections === 1,
    avatar_url: account.avatar_url,
    company_name: account.company_name,
    validator_hotkey: validatorHotkey,
    admin: account.operator_since !== null,
    internal_member: false,
    referral_code: account.referral_code,
    default_template_id: account.default_template_id,
    created_at: naiveUtc(account.created_at),
    updated_at: naiveUtc(account.updated_at),
    workspace: null,
  };
}
