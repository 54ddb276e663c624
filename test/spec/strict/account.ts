/** Accounts, API keys, settings, money and webhooks. */
import { z } from 'zod';
import { Template } from './resources.ts';
import { b, i, maybe, n, Success, s, strings, t, u } from './types.ts';

export const Health = z.object({ status: z.literal('ok'), name: s, version: s });
export const Slept = z.object({ slept: n });
export const Version = z.object({
  started_at: t,
  uptime_seconds: n,
  features: strings,
  version: s,
  hotkey: s,
  validator_hotkey: s,
  webhook_targets: z.enum(['public', 'loopback']),
});
export const SharedConfig = z.object({
  machine_prices: z.record(s, n),
  machine_min_price_rate: n,
  machine_max_price_rate: n,
  platform_fee_rate: n,
});

const Workspace = z.object({
  id: s,
  name: s,
  role: s,
  billing_owner_user_id: s,
  is_personal: b,
});
export const Account = z.object({
  id: u,
  name: s,
  email: s,
  balance: n,
  stripe_customer_id: maybe(s),
  stripe_connect_account_id: maybe(s),
  stripe_onboarding_completed: b,
  referral_payout_method: z.enum(['balance', 'stripe_connect', 'crypto']),
  pending_referral_balance: n,
  email_verified: b,
  discord_id: maybe(s),
  disable_incoming_connections: b,
  avatar_url: maybe(s),
  company_name: maybe(s),
  validator_hotkey: maybe(s),
  admin: b,
  internal_member: b,
  referral_code: s,
  default_template_id: maybe(u),
  created_at: t,
  updated_at: t,
  workspace: maybe(Workspace),
  held: n,
  unposted: n,
  available: n,
  burn_per_hour: n,
  runs_out_at: maybe(t),
});
export const SignUp = z.object({
  msg: z.literal('success'),
  api_key: s.regex(/^sk_[A-Za-z0-9_-]{43}$/),
  signup_credit_granted: b,
  user: Account,
});
export const LogIn = z.object({ user: Account, token: s, expires_at: t });
export const LogInTicket = z.object({ ticket: s, expires_at: t, expires_in_seconds: i });
export const SessionPage = z.object({
  sessions: z.array(
    z.object({ id: u, client: maybe(s), current: b, created_at: t, expires_at: t }),
  ),
  page: i,
  limit: i,
  total: i,
});
export const Removed = Success.extend({ id: u });
export const Address = z.object({ ip: s });
export const Exists = z.object({ exists: b });
export const Preference = z.object({
  default_template_id: maybe(u),
  default_template: maybe(Template),
  default_termination_hours: z.record(s, n),
});
export const Upload = z.object({
  upload_url: s,
  method: z.literal('PUT'),
  headers: z.record(s, s),
  object_key: s,
  public_url: maybe(s),
  expires_at: t,
});
export const ChatUrl = z.object({ authorization_url: maybe(s) });
export const ChatLink = z
  .object({ connected: b, discord_id: maybe(s), discord_username: maybe(s) })
  .nullable();

export const AutoTopUp = z.object({
  id: u,
  user_id: u,
  enabled: b,
  threshold_usd: n,
  amount_usd: n,
  monthly_limit_usd: maybe(n),
  payment_method_id: maybe(s),
  status: z.enum(['idle', 'charging', 'failed', 'suspended']),
  month_charged_usd: n,
  last_attempt_at: maybe(t),
  last_error: maybe(s),
  created_at: t,
  updated_at: t,
});
const flags = {
  low_balance: b,
  notice_period: b,
  pod_failed: b,
  scheduled_removal: b,
  machine_request: b,
};
export const EffectiveNotification = z.object({ ...flags, is_default: b });
export const NotificationSetting = z.object({
  id: u,
  user_id: u,
  ...flags,
  created_at: t,
  updated_at: t,
});
export const EffectiveThreshold = z.object({
  threshold_usd: n,
  runway_minutes: i,
  defaults: z.object({ threshold_usd: n, runway_minutes: i }),
  overridden: strings,
});
export const Threshold = z.object({
  id: u,
  user_id: u,
  threshold_usd: maybe(n),
  runway_minutes: maybe(i),
  created_at: t,
  updated_at: t,
});
export const Transfer = z.object({
  id: s,
  direction: z.enum(['sent', 'received']),
  amount: n,
  counterparty_email: s,
  note: maybe(s),
  status: z.literal('completed'),
  balance_after: n,
  created_at: t,
});
export const Transferred = Transfer.extend({ balance: n });
export const AlphaQuote = z.object({
  original: n,
  converted: maybe(n),
  rate: maybe(n),
  netuid: i,
});
export const AlphaSubnet = z.object({
  netuid: i,
  name: s,
  symbol: s,
  rate_usd: n,
  is_default: b,
});

export const ApiKey = z.object({
  id: u,
  user_id: u,
  name: s,
  masked_key: s.regex(/^.{10}\.\.\..{5}$/),
  is_active: b,
  created_at: t,
  updated_at: t,
  expires_at: maybe(t),
  last_used: maybe(t),
  key: maybe(s),
  scopes: maybe(strings),
  created_by_user_id: u,
  daily_budget_usd: maybe(n),
  max_budget_usd: maybe(n),
  spent_today_usd: n,
  spent_total_usd: n,
  pod_visibility: s,
  pods_count: i,
});
export const NewApiKey = ApiKey.extend({ key: s });
export const Scopes = z.object({
  available: b,
  scopes: z.array(
    z.object({
      scope: s,
      title: s,
      description: s,
      can: strings,
      route_families: strings,
      default: b,
    }),
  ),
  pod_visibility: z.array(z.object({ value: s, description: s })),
  money_routes: strings,
});
export const Refusals = z.object({
  refusals: z.array(
    z.object({
      id: s,
      api_key_id: u,
      event: s,
      created_at: t,
      window: s,
      route: s,
      amount_usd: n,
      budget_usd: n,
      spent_usd: n,
    }),
  ),
});
