/** Answers of routes that are served in addition to the interface. */
import { z } from 'zod';
import { b, i, maybe, n, s, strings, t, u } from './types.ts';

export const StreamTicket = z.object({ ticket: s, expires_at: s, expires_in_seconds: i });
export const PayoutAccount = z.object({
  stripe_connect_account_id: maybe(s),
  stripe_onboarding_completed: b,
  onboarding_url: maybe(s),
});
export const SearchResults = z.object({
  pods: z.array(z.object({ id: u, pod_name: s, status: s, executor_id: u })),
  volumes: z.array(z.object({ id: u, name: s })),
  templates: z.array(z.object({ id: u, name: s, docker_image: s })),
  nodes: z.array(z.object({ id: u, huid: s, machine_name: s, executor_ip_address: s })),
});
export const LedgerPage = z.object({
  lines: z.array(
    z.object({
      seq: i,
      at: t,
      group_id: s,
      kind: s,
      credit: s,
      counterpart: s,
      amount_usd: n,
      held_usd: n,
      balance_usd: n,
      cause_type: s,
      cause_id: s,
    }),
  ),
  next_after: maybe(i),
  next_before: maybe(i),
});
const webhook = {
  id: u,
  url: s,
  description: s,
  events: strings,
  enabled: b,
  disabled_reason: maybe(s),
  failing_since: maybe(t),
  next_attempt_at: maybe(t),
  created_at: t,
  updated_at: t,
};
export const Webhook = z.object(webhook);
export const NewWebhook = z.object({ ...webhook, secret: s });
export const Delivery = z.object({
  id: u,
  event_id: u,
  type: s,
  state: z.enum(['waiting', 'delivered', 'failed']),
  attempts: i,
  status: maybe(i),
  error: maybe(s),
  duration_ms: i,
  created_at: t,
  updated_at: t,
});
