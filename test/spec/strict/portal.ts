/** Answers of the provider portal. */
import { z } from 'zod';
import { Machine, Notice } from './nodes.ts';
import { b, i, maybe, n, Share, s, strings, t, u } from './types.ts';

export function one<Data extends z.ZodType>(data: Data) {
  return z.object({ success: z.literal(true), data, timestamp: t });
}

export function many<Item extends z.ZodType>(item: Item) {
  return one(z.array(item)).extend({
    total: i,
    page: i,
    limit: i,
    pagination: z.object({ page: i, limit: i, total: i, total_pages: i }),
  });
}

const Miner = z.object({
  id: u,
  miner_hotkey: s,
  miner_coldkey: s,
  email: maybe(s),
  discord_id: maybe(s),
  machine_request_subscription: strings,
  created_at: t,
  updated_at: t,
});
export const PortalLogIn = one(z.object({ miner: Miner, token: s }));
export const Profile = z.object({
  provider_id: u,
  miner_id: u,
  id: u,
  miner_hotkey: s,
  miner_coldkey: maybe(s),
  email: maybe(s),
  discord_id: maybe(s),
  discord_connected: b,
  extra_incentive_eligible: b,
  machine_request_subscription: strings,
  opt_in_status: b,
});
export const OptIn = one(
  z.object({
    miner_hotkey: s,
    miner_coldkey: s,
    central_miner_ip: s,
    central_miner_port: i,
  }),
);
const Reason = z.object({
  code: s,
  gating: b,
  message: s,
  measured: s,
  required: s,
  fix: s,
  fix_command: maybe(s),
  verify_command: maybe(s),
  requires: maybe(s),
  docs_url: maybe(s),
  kind: s,
});
export const PortalNode = z.object({
  id: u,
  huid: s,
  gpu_type: s,
  gpu_count: i,
  executor_ip_address: s,
  executor_ip_port: s,
  price_per_gpu: n,
  validator_hotkey: maybe(s),
  miner_hotkey: s,
  rented: b,
  status: s,
  min_gpu_count_for_rental: maybe(i),
  available_gpu_count: i,
  notice_period: maybe(Notice),
  blocking_reasons: z.array(Reason),
  created_at: t,
  updated_at: t,
});
export const NodePod = z.object({
  pod_id: u,
  pod_name: s,
  status: s,
  gpu_count: i,
  price: n,
  created_at: t,
  removal_scheduled_at: maybe(t),
  renter_ref: s,
});
export const Verification = z.object({
  verified: b,
  checked_at: maybe(t),
  validator_hotkey: s,
  score: maybe(n),
  checks: z.array(
    z.object({
      name: s,
      passed: b,
      gating: b,
      measured: s,
      required: s,
      message: s,
      fix: s,
      fix_command: maybe(s),
      verify_command: maybe(s),
    }),
  ),
  blocking_reasons: z.array(Reason),
});
export const SyncCounts = z.object({ added: i, updated: i, removed: i });

const billing = {
  id: s,
  executor_id: u,
  executor_huid: s,
  gpu_type: s,
  gpu_count: i,
  period_start: t,
  period_end: t,
  seconds: i,
  status: z.enum(['pending', 'paid', 'reversed']),
};
const earned = { seconds: i, gross_usd: n, fee_usd: n, net_usd: n };
export const NodeEarnings = z.object({ executor_id: u, executor_huid: s, gpu_type: s, ...earned });
export const EarningsSum = z.object(earned);
export const OwnBilling = z.object({
  ...billing,
  pod_id: u,
  gross_usd: n,
  fee_usd: n,
  net_usd: n,
  unposted: EarningsSum,
});
/** Rows of other providers: public columns only. */
export const ForeignBilling = z.object({
  ...billing,
  pod_id: z.null(),
  gross_usd: z.null(),
  fee_usd: z.null(),
  net_usd: z.null(),
  unposted: z.null(),
});

export const PortalRequest = z.object({
  id: u,
  gpu_class: s,
  gpu_count: maybe(i),
  hourly_budget: maybe(n),
  country: maybe(s),
  notes: maybe(s),
  status: s,
  created_at: t,
});
export const Aggregate = one(
  z.object({
    tier: z.literal('aggregate'),
    open_requests: i,
    by_gpu_class: z.array(z.object({ gpu_class: s, count: i })),
    by_hourly_budget_band: z.array(z.object({ band: s, count: i })),
  }),
);
export const RewardEstimate = z.object({
  rewards_on_subnet: Share,
  rental_income_per_hour: n,
  platform_fee_per_hour: n,
  expected_utilization: Share,
  gpu_type: s,
  gpu_count: i,
  gpu_price: n,
});
const token = {
  id: u,
  name: s,
  masked_token: s,
  created_at: t,
  expires_at: maybe(t),
  last_used: maybe(t),
};
export const ProviderToken = z.object(token);
export const NewProviderToken = z.object({ ...token, token: s });
export const Machines = many(Machine);
export const PortalNotice = one(Notice);
