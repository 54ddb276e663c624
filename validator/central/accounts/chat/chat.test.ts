import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  type OAuthProvider,
  startOAuthProvider,
} from '../../../../test/fakes/external/oauth-provider.ts';
import { createManualClock } from '../../../../test/fakes/manual-clock.ts';
import {
  createTestCentral,
  type TestAccount,
  type TestCentral,
} from '../../../../test/fakes/scenes/central-fixture.ts';
import { createOAuthChat } from '../../platform/adapters/oauth-chat.ts';

let provider: OAuthProvider;
let central: TestCentral;
let account: TestAccount;
beforeEach(async () => {
  provider = await startOAuthProvider();
  central = await createTestCentral({
    chat: createOAuthChat(provider.options, createManualClock()),
  });
  account = await central.signUp();
});
afterEach(async () => {
  await central.close();
  await provider.close();
});

async function begin(from = account): Promise<string> {
  const headers = from.key;
  const { status, body } = await central.call('GET', '/users/me/chat/oauth-url', { headers });
  expect([status, Object.keys(body)]).toEqual([200, ['authorization_url']]);
  return body.authorization_url;
}

async function callback(query: Record<string, string>, from = account) {
  const path = `/users/me/chat/callback?${new URLSearchParams(query)}`;
  return central.call('GET', path, { headers: from.session });
}

const chatIdOf = async (from = account) =>
  (await central.call('GET', '/users/me', { headers: from.key })).body.discord_id;

it('links a chat account by code, state and PKCE, shows the link, and removes the link', async () => {
  const answer = await callback(provider.allow(await begin(), '4711'));
  expect([answer.status, answer.body]).toEqual([
    200,
    { connected: true, discord_id: '4711', discord_username: 'u-4711' },
  ]);
  expect(await chatIdOf()).toBe('4711');
  const { headers } = { headers: account.key };
  const unlinked = await central.call('DELETE', '/users/me/chat', { headers });
  expect([unlinked.status, unlinked.body]).toEqual([200, { success: true }]);
  expect(await chatIdOf()).toBeNull();
  const events = await central.call('GET', '/users/me/events', { headers });
  expect(events.body.map((event: { detail: string }) => event.detail)).toEqual([
    'chat account unlinked',
    'chat account linked',
  ]);
});

it('accepts a state once, within ten minutes, from the account that began the link', async () => {
  const stranger = await central.signUp();
  const sent = provider.allow(await begin(), '1');
  const foreign = await callback(sent, stranger);
  expect([foreign.status, foreign.body.error.code]).toEqual([400, 'bad_request']);
  expect((await callback(sent)).status).toBe(200);
  expect((await callback(sent)).status).toBe(400);

  const late = provider.allow(await begin(), '1');
  await central.clock.advance(600_000);
  expect((await callback(late)).status).toBe(400);
  expect((await callback({ code: 'x', state: 'made-up' })).status).toBe(400);
  expect((await callback({ code: 'x' })).status).toBe(400);
  expect(await chatIdOf(stranger)).toBeNull();
});

it('rejects a code obtained for another state (PKCE)', async () => {
  const first = provider.allow(await begin(), 'victim');
  const second = provider.allow(await begin(), 'mine');
  const mixed = await callback({ code: first.code, state: second.state });
  expect([mixed.status, mixed.body.error.code]).toEqual([400, 'bad_request']);
  expect(await chatIdOf()).toBeNull();
});

it('returns null when the user denies access, and invalidates the state', async () => {
  const { state, code } = provider.allow(await begin(), '1');
  const denied = await callback({ state, error: 'access_denied' });
  expect([denied.status, denied.body]).toEqual([200, null]);
  expect((await callback({ state, code })).status).toBe(400);
});

it('links one chat account to one account only', async () => {
  await callback(provider.allow(await begin(), '7'));
  const other = await central.signUp();
  const refused = await callback(provider.allow(await begin(other), '7'), other);
  expect([refused.status, refused.body.error.code]).toEqual([409, 'conflict']);
  expect(await chatIdOf(other)).toBeNull();
  expect((await callback(provider.allow(await begin(), '7'))).status).toBe(200);
});

it('reports an unavailable platform, and stores neither tokens nor plain verifiers', async () => {
  const url = await begin();
  const { db } = central.ports;
  const stored = JSON.stringify(await db.selectFrom('chat_link_states').selectAll().execute());
  const state = new URL(url).searchParams.get('state') ?? '-';
  expect(stored).not.toContain(state);
  const sent = provider.allow(url, '1');
  provider.fail(true);
  const answer = await callback(sent);
  expect([answer.status, answer.body.error.code]).toEqual([502, 'upstream_unavailable']);
  expect(JSON.stringify(answer.body)).not.toContain('127.0.0.1');
});

it('limits unfinished links', async () => {
  for (let begun = 0; begun < 10; begun += 1) await begin();
  const { key: headers } = account;
  const refused = await central.call('GET', '/users/me/chat/oauth-url', { headers });
  expect([refused.status, refused.headers['retry-after']]).toEqual([429, '60']);
  await central.clock.advance(600_000);
  await begin();
});

it('returns null if no chat platform is configured', async () => {
  await central.close();
  central = await createTestCentral();
  const { key: headers } = await central.signUp();
  const url = await central.call('GET', '/users/me/chat/oauth-url', { headers });
  expect([url.status, url.body]).toEqual([200, { authorization_url: null }]);
  const linked = await central.call('GET', '/users/me/chat/callback', { headers });
  expect([linked.status, linked.body]).toEqual([200, null]);
  const unlinked = await central.call('DELETE', '/users/me/chat', { headers });
  expect([unlinked.status, unlinked.body]).toEqual([200, { success: true }]);
});
