import { afterAll, beforeAll, expect, it } from 'vitest';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { toHex } from '#shared/signing/sr25519.ts';
import {
  type OAuthProvider,
  startOAuthProvider,
} from '../../../test/fakes/external/oauth-provider.ts';
import { createManualClock } from '../../../test/fakes/manual-clock.ts';
import {
  createTestMarket,
  type TestMarket,
  testSigner,
} from '../../../test/fakes/scenes/market-fixture.ts';
import { createOAuthChat } from '../platform/adapters/oauth-chat.ts';

const DAY_MS = 86_400_000;

let chat: OAuthProvider;
let market: TestMarket;
let token: string;
beforeAll(async () => {
  chat = await startOAuthProvider();
  market = await createTestMarket({ chat: createOAuthChat(chat.options, createManualClock()) });
  token = await market.logIn();
});
afterAll(async () => {
  await market.close();
  await chat.close();
});

const post = (path: string, body: object, by = token) =>
  market.portal('POST', path, { token: by, body });
const me = async (by = token) => (await market.portal('GET', '/auth/me', { token: by })).body;

/** Returns a signed log-in. Advances the clock before, so that each message is new. */
async function signed(signer = market.provider) {
  await market.clock.advance(1_000);
  const message = String(Math.floor(market.clock.now() / 1_000));
  const signature = toHex(signer.sign(new TextEncoder().encode(message)));
  return { miner_hotkey: signer.hotkey, message, signature };
}

it('stores an e-mail address', async () => {
  const { status, body } = await post('/auth/set-email', { email: ' ops@example.com ' });
  expect([status, body.data.email]).toEqual([200, 'ops@example.com']);
  expect((await me()).email).toBe('ops@example.com');
  const miner = (await market.portal('POST', '/auth/login-flexible', { body: await signed() }))
    .body;
  expect(miner.data.miner.email).toBe('ops@example.com');
  for (const email of ['', 'nobody', 12, `${'a'.repeat(250)}@example.com`]) {
    expect((await post('/auth/set-email', { email })).status).toBe(422);
  }
});

it('sets a password with a new signature; a signature is accepted once, either for a log-in or for a password', async () => {
  const send = (body: object) => market.portal('POST', '/auth/set-password', { body });
  const good = { ...(await signed()), new_password: 'correct horse' };
  expect((await send({ ...good, new_password: 'short' })).status).toBe(422);
  expect((await send({ ...good, new_password: 'x'.repeat(129) })).status).toBe(422);
  const first = await send(good);
  expect([first.status, first.body.data]).toEqual([200, {}]);
  expect((await send(good)).status).toBe(401);
  const { new_password: _, ...login } = good;
  expect((await market.portal('POST', '/auth/login-flexible', { body: login })).status).toBe(401);
  const stranger = { ...(await signed(testSigner(9))), miner_hotkey: market.provider.hotkey };
  expect((await send({ ...stranger, new_password: 'correct horse' })).status).toBe(401);
  const stale = { ...(await signed()), new_password: 'correct horse' };
  await market.clock.advance(301_000);
  expect((await send(stale)).status).toBe(401);
  const { password_hash: hash } = await market.ports.db
    .selectFrom('providers')
    .select('password_hash')
    .where('hotkey', '=', market.provider.hotkey)
    .executeTakeFirstOrThrow();
  expect(hash).toMatch(/^\$argon2id\$/);
  expect((await market.portal('GET', '/auth/me', { token })).status).toBe(401);
  token = await market.logIn();
});

it('logs in with the password that the provider has set', async () => {
  const logIn = (password: string, hotkey: string = market.provider.hotkey) =>
    market.portal('POST', '/auth/login', { body: { miner_hotkey: hotkey, password } });
  const password = 'battery staple';
  expect((await logIn(password)).status).toBe(401);
  await market.portal('POST', '/auth/set-password', {
    body: { ...(await signed()), new_password: password },
  });
  const { status, body } = await logIn(password);
  expect([status, body.data.miner.miner_hotkey]).toEqual([200, market.provider.hotkey]);
  expect((await me(body.data.token)).miner_hotkey).toBe(market.provider.hotkey);
  await market.portal('POST', '/auth/set-password', {
    body: { ...(await signed()), new_password: 'another staple' },
  });
  expect((await market.portal('GET', '/auth/me', { token: body.data.token })).status).toBe(401);
  expect((await logIn(password)).status).toBe(401);
  const wrong = await logIn('battery stable');
  const unknown = await logIn(password, testSigner(9).hotkey);
  expect([wrong.status, unknown.status]).toEqual([401, 401]);
  expect(wrong.body.message).toBe(unknown.body.message);
  token = await market.logIn();
});

it('logs in once with a ticket of a session, and creates none for a provider token', async () => {
  const session = await market.logIn();
  const create = (by: string) => market.portal('POST', '/auth/tickets', { token: by });
  const exchange = (ticket: string) =>
    market.portal('POST', '/auth/exchange-ticket', { body: { ticket } });
  const { ticket } = (await create(session)).body.data;
  const { body } = await exchange(ticket);
  expect((await me(body.data.token)).miner_hotkey).toBe(market.provider.hotkey);
  expect((await exchange(ticket)).body.error.code).toBe('ticket_invalid');
  const made = await post('/auth/tokens', { name: 'page' });
  expect((await create(made.body.data.token)).body.error.code).toBe('forbidden');
  await market.portal('DELETE', `/auth/tokens/${made.body.data.id}`, { token });
  const late = (await create(session)).body.data.ticket;
  await post('/auth/logout', {}, session);
  expect((await exchange(late)).status).toBe(401);
});

it('subscribes to known GPU types; an empty list removes all subscriptions', async () => {
  const set = (classes: unknown) =>
    post('/auth/set-machine-request-subscription', { machine_request_subscription: classes });
  const { body } = await set(['H100', 'NVIDIA GeForce RTX 4090', 'H100']);
  expect(body.data.machine_request_subscription).toEqual(['H100', 'NVIDIA GeForce RTX 4090']);
  expect((await me()).machine_request_subscription).toHaveLength(2);
  const unknown = await set(['L40S', 'Voodoo 2']);
  expect([unknown.status, unknown.body.error.code]).toEqual([400, 'bad_request']);
  expect(unknown.body.message).toContain('NVIDIA H200');
  expect((await me()).machine_request_subscription).toHaveLength(2);
  expect((await set('H100')).status).toBe(422);
  expect((await set(Array.from({ length: 101 }, () => 'H100'))).status).toBe(422);
  const foreign = await set([
    '!URGENT: verify at https://evil.example/ B200',
    'nvidia l40s',
    'h100',
  ]);
  expect(foreign.body.data.machine_request_subscription).toEqual(['B200', 'H100', 'NVIDIA L40S']);
  expect((await set(['B200\r\nBcc: x'])).status).toBe(422);
  expect((await set(['H100 MIG 3g.https://evil.example/'])).status).toBe(400);
  expect((await set([])).body.data.machine_request_subscription).toEqual([]);
});

it('links a chat account to one provider only, which becomes eligible for extra incentives', async () => {
  const begin = async (by = token) =>
    (await market.portal('GET', '/auth/me/discord/oauth-url', { token: by })).body.data
      .authorization_url;
  const callback = (query: Record<string, string>, by = token) =>
    market.portal('GET', `/auth/me/discord/callback?${new URLSearchParams(query)}`, { token: by });
  const other = await market.logIn(testSigner(9));
  const sent = chat.allow(await begin(), '77');
  expect((await callback(sent, other)).status).toBe(400);
  const linked = await callback(sent);
  expect(linked.body.data).toEqual({
    connected: true,
    discord_id: '77',
    discord_username: 'u-77',
  });
  const eligible = { discord_id: '77', discord_connected: true, extra_incentive_eligible: true };
  expect(await me()).toMatchObject(eligible);
  expect((await callback(sent)).status).toBe(400);
  const taken = await callback(chat.allow(await begin(other), '77'), other);
  expect([taken.status, taken.body.error.code]).toEqual([409, 'conflict']);
  const { state } = chat.allow(await begin(), '78');
  const denied = await callback({ state, error: 'access_denied' });
  expect([denied.status, denied.body.data]).toEqual([200, null]);
  const unlinked = await market.portal('DELETE', '/auth/me/discord', { token });
  expect(unlinked.body.data).toMatchObject({
    discord_id: null,
    discord_connected: false,
    extra_incentive_eligible: false,
  });
});

it('removes the nodes from the market on opt-out and lists them again on opt-in, while rentals continue', async () => {
  const free = await market.verifiedNode();
  const rented = await market.verifiedNode();
  const renter = await market.renter();
  const { id: podId } = (await market.rent(renter, rented.id)).body;
  await market.sync();
  const offered = async () =>
    (await market.call('GET', '/executors')).body.map((node: { id: string }) => node.id);
  expect(await offered()).toEqual([free.id]);

  const { status, body } = await post('/miners/opt-in', { opt_in_status: false });
  expect([status, body.data]).toEqual([
    200,
    {
      miner_hotkey: market.provider.hotkey,
      miner_coldkey: market.provider.hotkey,
      central_miner_ip: '127.0.0.1',
      central_miner_port: 8_090,
      opt_in_status: false,
    },
  ]);
  expect(await offered()).toEqual([]);
  const refused = await market.rent(renter, free.id);
  expect([refused.status, refused.body.error.code]).toEqual([409, 'node_paused_by_provider']);
  const pod = await market.call('GET', `/pods/${podId}`, { headers: renter.key });
  expect(pod.body.status).toBe('RUNNING');
  expect((await me()).opt_in_status).toBe(false);
  const row = await market.portal('GET', `/executors/${free.id}`, { token });
  expect(row.body.data.status).toBe('paused');

  await post('/providers/opt-in', { opt_in_status: true });
  expect(await offered()).toEqual([free.id]);
  expect((await post('/miners/opt-in', { opt_in_status: 'no' })).status).toBe(422);
});

it('accepts provider tokens until they expire or are deleted', async () => {
  const expires_at = `${naiveUtc(market.clock.now() + DAY_MS)}Z`;
  const made = (await post('/auth/tokens', { name: 'fleet', expires_at })).body.data;
  expect(made.token).toMatch(/^lpk_[A-Za-z0-9_-]{43}$/);
  expect(made.masked_token).toBe(`lpk_...${made.token.slice(-5)}`);
  expect((await me(made.token)).miner_hotkey).toBe(market.provider.hotkey);
  const list = (await market.portal('GET', '/auth/tokens', { token: made.token })).body.data;
  expect(list).toMatchObject([{ id: made.id, name: 'fleet', last_used: expect.any(String) }]);
  expect(JSON.stringify(list)).not.toContain(made.token);
  const stored = await market.ports.db.selectFrom('provider_tokens').selectAll().execute();
  expect(JSON.stringify(stored)).not.toContain(made.token);

  expect((await post('/auth/tokens', { name: 'more' }, made.token)).status).toBe(403);
  expect((await post('/auth/logout', {}, made.token)).status).toBe(400);
  await market.clock.advance(DAY_MS);
  const expired = await market.portal('GET', '/auth/me', { token: made.token });
  expect([expired.status, expired.body.error.code]).toEqual([419, 'client_error']);

  const lasting = (await post('/auth/tokens', { name: 'lasting' })).body.data;
  const path = `/auth/tokens/${lasting.id}`;
  const other = await market.logIn(testSigner(9));
  expect((await market.portal('DELETE', path, { token: other })).status).toBe(404);
  expect((await market.portal('DELETE', path, { token: lasting.token })).status).toBe(403);
  expect((await market.portal('DELETE', path, { token })).body.data.id).toBe(lasting.id);
  expect((await market.portal('GET', '/auth/me', { token: lasting.token })).status).toBe(401);
  const past = { name: 'late', expires_at: '2020-01-01T00:00:00Z' };
  expect((await post('/auth/tokens', past)).status).toBe(400);
});

it('returns 419 for an expired session and 401 for an unknown token', async () => {
  const short = await market.logIn();
  await market.clock.advance(7 * DAY_MS);
  const expired = await market.portal('GET', '/auth/me', { token: short });
  expect([expired.status, expired.body.error.code]).toEqual([419, 'client_error']);
  for (const bad of ['x', 'lpk_', `lpk_${'a'.repeat(43)}`, `lpk_${'a'.repeat(5_000)}`]) {
    const { status, body } = await market.portal('GET', '/auth/me', { token: bad });
    expect([status, body.error.hint]).toEqual([
      401,
      'Log in at /portal/auth/login-flexible and send Authorization: Bearer with the token.',
    ]);
  }
});

it('limits log-ins and passwords by client address', async () => {
  const rate = { quota: 1_000, windowMs: 60_000 };
  const login = { quota: 2, windowMs: 60_000 };
  const limited = await createTestMarket({
    rateLimits: { address: rate, credential: rate, urgent: rate, search: rate, login },
    log: createLog({ name: 'test', level: 'silent' }),
  });
  const body = { ...(await signed()), signature: 'zz', new_password: 'correct horse' };
  const statuses: number[] = [];
  for (const path of ['/auth/login-flexible', '/auth/set-password', '/auth/login-flexible']) {
    statuses.push((await limited.portal('POST', path, { body })).status);
  }
  expect(statuses).toEqual([401, 401, 429]);
  await limited.close();
});
