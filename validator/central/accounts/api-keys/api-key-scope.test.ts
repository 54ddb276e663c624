import { afterEach, beforeEach, expect, it } from 'vitest';
import { upgrade } from '../../../../test/fakes/raw-upgrade.ts';
import type { TestAccount } from '../../../../test/fakes/scenes/central-fixture.ts';
import { createTestMarket, type TestMarket } from '../../../../test/fakes/scenes/market-fixture.ts';

let market: TestMarket;
let owner: TestAccount;
beforeEach(async () => {
  market = await createTestMarket();
  owner = await market.renter();
});
afterEach(() => market.close());

async function keyWith(scopes: string[] | null) {
  const body = { name: 'limited', scopes };
  const made = await market.call('POST', '/keys', { headers: owner.session, body });
  return { 'x-api-key': made.body.key as string };
}

it('refuses a rental by a key without the scope before it has any effect', async () => {
  const node = await market.verifiedNode();
  const reader = await keyWith(['read']);
  const refused = await market.rent(owner, node.id, {}, { ...reader, 'idempotency-key': 'once' });
  expect([refused.status, refused.body.error.code]).toEqual([403, 'forbidden']);
  expect(refused.body.message).toContain("does not have the 'rent' scope");
  expect(await market.ports.db.selectFrom('pods').selectAll().execute()).toEqual([]);
  // The refused request did not use up its Idempotency-Key.
  const renter = { ...(await keyWith(['rent'])), 'idempotency-key': 'once' };
  const rented = await market.rent(owner, node.id, {}, renter);
  expect(rented.status).toBe(200);
  const list = await market.call('GET', '/pods', { headers: renter });
  expect([list.status, list.body.message]).toEqual([
    403,
    expect.stringContaining("the 'read' scope"),
  ]);
  const events = `/pods/${rented.body.id}/events`;
  expect((await market.call('GET', events, { headers: renter })).status).toBe(200);
});

it('treats a key without the scope `read` as no credential on open routes', async () => {
  const body = { name: 'private', docker_image: 'ubuntu' };
  const made = await market.call('POST', '/templates', { headers: owner.key, body });
  expect(made.status).toBe(200);
  const names = async (headers: Record<string, string>) =>
    (await market.call('GET', '/templates', { headers })).body.map(
      ({ name }: { name: string }) => name,
    );
  expect(await names(await keyWith(['read']))).toContain('private');
  const answer = await names(await keyWith(['rent']));
  expect(answer.length).toBeGreaterThan(0);
  expect(answer).not.toContain('private');
});

it('grants all rights to a key without scopes, and the rights of the key to its stream tickets', async () => {
  const node = await market.verifiedNode();
  const all = await keyWith(null);
  const { id } = (await market.rent(owner, node.id, {}, all)).body;
  const renter = await keyWith(['rent']);
  const { ticket } = (
    await market.call('POST', `/pods/${id}/stream-ticket`, { headers: renter, body: {} })
  ).body;
  const feed = (await market.call('POST', '/users/me/stream-ticket', { headers: renter, body: {} }))
    .body;
  expect([typeof ticket, typeof feed.ticket]).toEqual(['string', 'string']);
  const stream = await market.call('GET', `/users/me/events/stream?ticket=${feed.ticket}`);
  expect([stream.status, stream.body.message]).toEqual([
    403,
    expect.stringContaining("does not have the 'read' scope"),
  ]);
});

it('does not allow a key with the scope read more than reading', async () => {
  const node = await market.verifiedNode();
  const { id } = (await market.rent(owner, node.id)).body;
  const reader = await keyWith(['read']);
  const key = reader['x-api-key'];
  const attempts: [name: string, headers: Record<string, string>][] = [
    ['as a bearer token', { authorization: `Bearer ${key}` }],
    ['beside a session', { ...reader, ...owner.session }],
    ['beside a key with all rights', { ...reader, authorization: `Bearer ${owner.apiKey}` }],
  ];
  for (const [name, headers] of attempts) {
    const answer = await market.call('DELETE', `/pods/${id}`, { headers });
    expect([name, answer.status, answer.body.error.code]).toEqual([name, 403, 'forbidden']);
  }
  for (const path of [`/pods/${id}/`, `/pods/${id.toUpperCase()}`, `/pods/${id}?method=GET`]) {
    expect([path, (await market.call('DELETE', path, { headers: reader })).status]).toEqual([
      path,
      403,
    ]);
  }
  // The scope is required for every notation of the path.
  for (const path of ['/pods', '/pods/', `/pods/${id}/`]) {
    expect([path, (await market.call('GET', path, { headers: reader })).status]).toEqual([
      path,
      200,
    ]);
  }
  const head = await market.server.inject({ method: 'HEAD', url: '/api/pods', headers: reader });
  expect(head.statusCode).not.toBe(403);
  const override = { ...reader, 'x-http-method-override': 'DELETE' };
  expect((await market.call('GET', `/pods/${id}`, { headers: override })).body.status).toBe(
    'PENDING',
  );
  const upload = {
    file_name: 'a.png',
    content_type: 'image/png',
    size_bytes: 1,
    purpose: 'avatar',
  };
  const signed = { headers: reader, body: upload };
  expect((await market.call('POST', '/users/presigned-url', signed)).status).toBe(403);
  expect((await market.portal('GET', '/auth/me', { token: key })).status).toBe(401);
});

it('rejects a request for the terminal with a key of scope read, also by a ticket, and a request for a log with a key of scope rent', async () => {
  const node = await market.verifiedNode();
  const { id } = (await market.rent(owner, node.id)).body;
  const reader = await keyWith(['read']);
  const renter = await keyWith(['rent']);
  const origin = await market.server.listen({ host: '127.0.0.1', port: 0 });
  const ticketOf = async (headers: Record<string, string>) =>
    (await market.call('POST', `/pods/${id}/stream-ticket`, { headers, body: {} })).body.ticket;
  const terminal = `${origin}/api/pods/${id}/terminal`;
  const log = `${origin}/api/pods/${id}/logs`;
  expect(await upgrade(terminal, reader)).toMatchObject({ status: 403, code: 'forbidden' });
  const byTicket = await upgrade(`${terminal}?ticket=${await ticketOf(reader)}`);
  expect(byTicket).toMatchObject({ status: 403, code: 'forbidden' });
  // A ticket does not extend the rights of other credentials in the same request.
  const both = await upgrade(`${terminal}?ticket=${await ticketOf(reader)}`, owner.key);
  expect(both).toMatchObject({ status: 403, code: 'forbidden' });
  expect(await upgrade(log, renter)).toMatchObject({ status: 403, code: 'forbidden' });
  expect(await upgrade(`${log}?ticket=${await ticketOf(renter)}`)).toMatchObject({ status: 403 });
  // A key of scope rent is not rejected because of its scope, but because the fake agent opens no terminals.
  expect((await upgrade(terminal, renter)).code).not.toBe('forbidden');
});

it('rejects a rental with a key of scope read: returns no stored response, and does not claim the Idempotency-Key', async () => {
  const node = await market.verifiedNode();
  const once = { 'idempotency-key': 'once' };
  const rented = await market.rent(owner, node.id, {}, once);
  expect(rented.status).toBe(200);
  const replay = await market.rent(owner, node.id, {}, { ...(await keyWith(['read'])), ...once });
  expect([replay.status, replay.headers['idempotent-replayed']]).toEqual([403, undefined]);
  const again = await market.rent(owner, node.id, {}, once);
  expect([again.headers['idempotent-replayed'], again.body]).toEqual(['true', rented.body]);
});

it('does not return the address of a notebook server, which opens a shell, to keys without the scope rent', async () => {
  const node = await market.verifiedNode();
  const host = market.agents.host(node.id);
  const { id } = (await market.rent(owner, node.id, { enable_jupyter: true })).body;
  await market.sync();
  const running = { step: null, reason: null, message: '', path: '/', since_ms: 0 };
  host.change(id, {
    notebook: { request: 1, internal_port: 8888, status: 'running', ...running },
  });
  await market.clock.advance(10_000);
  await market.sync();
  const urlsFor = async (headers: Record<string, string>) => [
    (await market.call('GET', `/pods/${id}`, { headers })).body.jupyter_url,
    (await market.call('GET', '/pods', { headers })).body[0].jupyter_url,
  ];
  const [url] = await urlsFor(owner.key);
  expect(url).toContain('?token=');
  expect(await urlsFor(await keyWith(['read', 'rent']))).toEqual([url, url]);
  expect(await urlsFor(owner.session)).toEqual([url, url]);
  expect(await urlsFor(await keyWith(['read']))).toEqual([null, null]);
  expect(await urlsFor(await keyWith(['read', 'manage']))).toEqual([null, null]);
});
