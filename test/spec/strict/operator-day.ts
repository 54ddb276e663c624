/** The operator's day: it reads accounts and their events, refunds a pod, and bans a provider for a short time. */
import { z } from 'zod';
import * as account from './account.ts';
import type { DayScene } from './day-scene.ts';

const Accounts = z.object({
  accounts: z
    .array(
      z.object({
        id: z.uuid(),
        email: z.string(),
        name: z.string(),
        email_verified: z.boolean(),
        admin: z.boolean(),
        created_at: z.string(),
      }),
    )
    .min(1),
  page: z.int(),
  limit: z.int(),
  total: z.int(),
});
const AccountPod = z.object({
  id: z.uuid(),
  pod_name: z.string(),
  executor_id: z.uuid(),
  status: z.string(),
  gpu_count: z.int(),
  price_per_gpu_hour: z.number(),
  charged: z.number(),
  refunded: z.number(),
  created_at: z.string(),
  ended_at: z.string().nullable(),
});
const Account = z.object({ account: account.Account, pods: z.array(AccountPod).min(1) });
const Refunded = z.object({
  pod_id: z.uuid(),
  account_id: z.uuid(),
  amount: z.number(),
  group_id: z.string(),
  refunded_at: z.string(),
});
const Ban = z.object({ hotkey: z.string(), banned: z.boolean(), changed: z.literal(true) });
const Audit = z
  .array(
    z.object({
      seq: z.int(),
      operator: z.string(),
      action: z.string(),
      subject_type: z.string(),
      subject_id: z.string(),
      reason: z.string(),
      at: z.string(),
    }),
  )
  .min(4);

/** `renterId` has a pod that ended. */
export async function operate({ api, market }: DayScene, renterId: string): Promise<void> {
  const { call } = api;
  const operator = await market.signUp();
  await market.setOperator(operator);
  const headers = operator.session;
  await call('GET /operator/accounts', Accounts, { headers, query: { q: 'renter@' } });
  const params = { id: renterId };
  const { pods } = await call('GET /operator/accounts/{id}', Account, { headers, params });
  const charged = pods.find((pod) => pod.charged > 0);
  if (charged === undefined) throw new Error('no pod was charged');
  await call('POST /operator/pods/{id}/refund', Refunded, {
    headers,
    params: { id: charged.id },
    body: { reason: 'the image did not start' },
  });
  for (const act of ['ban', 'unban']) {
    await call(`POST /operator/providers/{hotkey}/${act}`, Ban, {
      headers,
      params: { hotkey: market.provider.hotkey },
      body: { reason: 'sold cards that do not exist' },
    });
  }
  await call('GET /operator/audit', Audit, { headers });
}
