/** The provider's day in the portal. */
import { z } from 'zod';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { toHex } from '#shared/signing/sr25519.ts';
import { testSigner } from '../../fakes/scenes/market-fixture.ts';
import { ChatUrl, LogInTicket, SharedConfig } from './account.ts';
import type { DayScene } from './day-scene.ts';
import { Rentability } from './nodes.ts';
import * as portal from './portal.ts';
import { AnyObject } from './types.ts';

const DAY_MS = 86_400_000;
/** A provider without a verified node. */
const NEWCOMER = testSigner(9);

export type Provider = { headers: Record<string, string> };

/** Signs the present time, as each log-in must. The clock advances, because a signature is accepted once. */
async function proofOf({ market }: DayScene, signer = market.provider) {
  await market.clock.advance(1_000);
  const message = String(Math.floor(market.clock.now() / 1_000));
  const signature = toHex(signer.sign(new TextEncoder().encode(message)));
  return { miner_hotkey: signer.hotkey, message, signature };
}

export async function logIn(scene: DayScene, signer = scene.market.provider): Promise<Provider> {
  const { data } = await scene.portal.call('POST /auth/login-flexible', portal.PortalLogIn, {
    body: await proofOf(scene, signer),
  });
  return { headers: { authorization: `Bearer ${data.token}` } };
}

/** Sets a password, which ends the sessions of the provider. */
export async function setPassword(scene: DayScene): Promise<void> {
  await scene.portal.call('POST /auth/set-password', portal.one(z.object({})), {
    body: { ...(await proofOf(scene)), new_password: 'correct horse battery' },
  });
}

export async function arrangeProfile(scene: DayScene, { headers }: Provider): Promise<void> {
  const { call } = scene.portal;
  const Profile = portal.one(portal.Profile);
  await call('GET /openapi.json', AnyObject);
  await call('GET /v1/shared-config', SharedConfig);
  const { data: created } = await call('POST /auth/tickets', portal.one(LogInTicket), { headers });
  await call('POST /auth/exchange-ticket', portal.PortalLogIn, {
    body: { ticket: created.ticket },
  });
  await call('POST /auth/login', portal.PortalLogIn, {
    body: { miner_hotkey: scene.market.provider.hotkey, password: 'correct horse battery' },
  });
  await call('GET /auth/me', portal.Profile, { headers });
  const email = { email: 'provider@example.com' };
  await call('POST /auth/set-email', Profile, { headers, body: email });
  await call('POST /auth/set-machine-request-subscription', Profile, {
    headers,
    body: { machine_request_subscription: ['H100'] },
  });
  const { data } = await call('GET /auth/me/discord/oauth-url', portal.one(ChatUrl), { headers });
  const grant = scene.chat.allow(data.authorization_url ?? '', '12');
  await call('GET /auth/me/discord/callback', portal.one(AnyObject), { headers, query: grant });
  await call('DELETE /auth/me/discord', Profile, { headers });
  const made = await call('POST /auth/tokens', portal.one(portal.NewProviderToken), {
    headers,
    body: { name: 'fleet' },
  });
  await call('GET /auth/tokens', portal.one(z.array(portal.ProviderToken)), { headers });
  await call('DELETE /auth/tokens/{id}', portal.one(portal.ProviderToken), {
    headers,
    params: { id: made.data.id },
  });
  for (const path of ['/miners/opt-in', '/providers/opt-in']) {
    await call(`POST ${path}`, portal.OptIn, { headers, body: { opt_in_status: true } });
  }
}

/** Adds a node and changes its offer. */
export async function offerNode(scene: DayScene, { headers }: Provider): Promise<void> {
  const { call } = scene.portal;
  const One = portal.one(portal.PortalNode);
  const added = await call('POST /executors', One, {
    headers,
    body: { gpu_type: 'H100', ip: '127.0.0.1', port: 9_999, gpu_count: 2 },
  });
  const at = { headers, params: { id: added.data.id } };
  await call('GET /executors', portal.many(portal.PortalNode), { headers });
  await call('GET /executors', portal.many(portal.PortalNode), {
    headers,
    query: { scope: 'all' },
  });
  await call('GET /executors/{id}', One, at);
  await call('GET /executors/{id}/verification', portal.one(portal.Verification), at);
  await call('POST /executors/{id}/update-price', One, { ...at, body: { price_per_gpu: 2.5 } });
  await call('POST /executors/{id}/update-gpu', One, { ...at, body: { gpu_count: 4 } });
  const start = `${naiveUtc(scene.market.clock.now() + 3 * DAY_MS)}Z`;
  await call('POST /executors/{id}/notice-period', portal.PortalNotice, {
    ...at,
    body: { starting_at: start, period_in_minute: 30 },
  });
  await call('GET /executors/{id}', One, at);
  await call('DELETE /executors/{id}/notice-period', portal.PortalNotice, at);
  await call('DELETE /executors/{id}', One, at);
  for (const path of ['central-miner', 'central-provider', 'miner-portal']) {
    const operation = `POST /executors/sync-executor-${path}`;
    await call(operation, portal.one(portal.SyncCounts), { headers, body: {} });
  }
  await call('GET /machines', portal.Machines);
  await call('GET /machines/estimated-rewards', portal.one(portal.RewardEstimate), {
    query: { gpu_type: 'H100', gpu_count: 2 },
  });
}

/** Allows rentals of single GPUs of a checked node, pauses the node for a short time and enters its location. */
export async function openNode(
  { api, portal: { call } }: DayScene,
  { headers }: Provider,
  id: string,
): Promise<void> {
  const One = portal.one(portal.PortalNode);
  const at = { headers, params: { id } };
  const body = { min_gpu_count_for_rental: 1 };
  await call('POST /executors/{id}/min-gpu-count-for-rental', One, { ...at, body });
  await call('DELETE /executors/{id}/min-gpu-count-for-rental', One, at);
  await call('POST /executors/{id}/min-gpu-count-for-rental', One, { ...at, body });
  await call('POST /executors/{id}/pause', One, at);
  await call('GET /executors/{id}/verification', portal.one(portal.Verification), at);
  await api.call('GET /executors/{executor_uuid}/rentability', Rentability, {
    params: { executor_uuid: id },
  });
  await call('POST /executors/{id}/resume', One, at);
  const Place = portal.one(AnyObject);
  await call('GET /executors/{id}/location', Place, at);
  await call('POST /executors/{id}/location', Place, { ...at, body: { country_code: 'DE' } });
  await call('GET /executors', portal.many(portal.PortalNode), { headers });
}

/** Reads the pods on a node and fulfils both machine requests with the node. */
export async function serveRenters(
  scene: DayScene,
  { headers }: Provider,
  { nodeId, requests: [first = '', second = ''] }: { nodeId: string; requests: readonly string[] },
): Promise<void> {
  const { call } = scene.portal;
  const at = { headers, params: { id: nodeId } };
  const One = portal.one(portal.PortalRequest);
  await call('GET /machine-requests', portal.Aggregate, await logIn(scene, NEWCOMER));
  await call('DELETE /executors/{id}/location', portal.one(AnyObject), at);
  await call('GET /executors/{id}/metrics', portal.one(AnyObject), {
    ...at,
    query: { per_gpu: 'true' },
  });
  await call('GET /executors/{id}/pods', portal.many(portal.NodePod), at);
  await call('GET /executors/{id}/verification', portal.one(portal.Verification), at);
  await call('GET /machine-requests', portal.many(portal.PortalRequest), { headers });
  await call('GET /machine-requests/{id}', One, { headers, params: { id: first } });
  await call('GET /executors/{id}/machine-requests', portal.many(portal.PortalRequest), at);
  await call('POST /executors/{id}/machine-added', One, {
    ...at,
    body: { machine_request_id: first },
  });
  await call('POST /machine-added', One, { headers, body: { request_id: second } });
}

/** Reads the earnings of the day, as their owner and as another provider. */
export async function readEarnings(scene: DayScene): Promise<void> {
  const { call } = scene.portal;
  const { headers } = await logIn(scene);
  const { hotkey } = scene.market.provider;
  await call('GET /billing', portal.many(portal.OwnBilling), { headers });
  await call(
    'GET /billing/nodes',
    portal
      .many(portal.NodeEarnings)
      .extend({ sum: portal.EarningsSum, unposted: portal.EarningsSum }),
    { headers },
  );
  const at = { params: { hotkey } };
  await call('GET /billing/{hotkey}', portal.many(portal.OwnBilling), { headers, ...at });
  const other = await logIn(scene, NEWCOMER);
  await call('GET /billing/{hotkey}', portal.many(portal.ForeignBilling), { ...other, ...at });
  await call('GET /billing', portal.many(portal.ForeignBilling), {
    ...other,
    query: { scope: 'all' },
  });
  const answer = z.object({ success: z.literal(true) });
  await call('POST /auth/logout', answer, { headers });
}
