/** The account record as the wire shows it (contract 9.2). Pure. */

import { microToUsd } from '#shared/api/money.ts';
import { naiveUtc } from '#shared/runtime/clock.ts';
import type { Balance } from '../../money/balance/balance.service.ts';
import type { Account } from '../../platform/database/tables.ts';
import type { User } from './account.schemas.ts';

export type AccountShown = {
  account: Account;
  balance: Balance;
  validatorHotkey: string | null;
  /** Micro-dollars earned with those that it brought, and not paid. */
  referralUusd: number;
};

/** Members of features that an account has not got (payouts by the payment processor, workspaces) are null or off. */
export function toUser({ account, balance, ...shown }: AccountShown): User {
  const { validatorHotkey, referralUusd } = shown;
  const available = balance.posted - balance.held;
  return {
    id: account.id,
    name: account.name,
    email: account.email,
    balance: microToUsd(balance.posted),
    held: microToUsd(balance.held),
    available: microToUsd(available),
    burn_per_hour: microToUsd(balance.burnPerHour),
    runs_out_at: balance.runsOutAtMs === null ? null : naiveUtc(balance.runsOutAtMs),
    stripe_customer_id: account.payment_customer_id,
    stripe_connect_account_id: null,
    stripe_onboarding_completed: false,
    referral_payout_method: account.referral_payout_method,
    pending_referral_balance: microToUsd(referralUusd),
    email_verified: account.email_verified_at !== null,
    discord_id: account.chat_user_id,
    disable_incoming_connections: account.disable_incoming_connections === 1,
    avatar_url: account.avatar_url,
    company_name: account.company_name,
    validator_hotkey: validatorHotkey,
    admin: false,
    internal_member: false,
    referral_code: account.referral_code,
    default_template_id: account.default_template_id,
    created_at: naiveUtc(account.created_at),
    updated_at: naiveUtc(account.updated_at),
    workspace: null,
  };
}
