import { afterEach, beforeEach, expect, it } from 'vitest';
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

it('refuses a rental by a key without the scope before any effect', async () => {
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

it('treats a key without read as no credential on open routes', async () => {
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

it('gives a key without scopes all rights, and a stream ticket the rights of its key', async () => {
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
