import { expect, it } from 'vitest';
import type { Account } from '../../platform/database/tables.ts';
import { toUser } from './account-view.ts';

const NOW_MS = 1_800_000_000_000;
const account: Account = {
  id: 'a',
  email: 'a@example.com',
  email_norm: 'a@example.com',
  email_verified_at: null,
  pending_email: null,
  password_hash: 'secret',
  name: 'a',
  default_template_id: null,
  referral_code: 'code',
  company_name: null,
  avatar_url: null,
  disable_incoming_connections: 0,
  termination_hours_json: '{}',
  signup_credit_at: null,
  chat_user_id: null,
  chat_username: null,
  referral_payout_method: 'balance',
  referral_crypto_address: null,
  referral_crypto_network: null,
  payment_customer_id: null,
  payout_account_id: null,
  payout_onboarded_at: null,
  operator_since: null,
  deleted_at: null,
  created_at: NOW_MS,
  updated_at: NOW_MS,
};

it('shows the available balance and when it runs out, but never the password', () => {
  const balance = {
    posted: 3_000_000,
    unposted: 1_234,
    held: 600_000,
    burnPerHour: 2_400_000,
    runsOutAtMs: NOW_MS + 3_600_000,
  };
  const user = toUser({ account, balance, validatorHotkey: null, referralUusd: 1_500_000 });
  expect(user).toMatchObject({
    balance: 3,
    unposted: 0.001234,
    held: 0.6,
    pending_referral_balance: 1.5,
    available: 2.4,
    burn_per_hour: 2.4,
    runs_out_at: '2027-01-15T09:00:00.000000',
  });
  expect(JSON.stringify(user)).not.toContain('secret');
});
