import { afterEach, beforeEach, expect, it } from 'vitest';
import { upgrade } from '../../../../test/fakes/raw-upgrade.ts';
import type { TestAccount } from '../../../../test/fakes/scenes/central-fixture.ts';
import { createTestMarket, type TestMarket } from '../../../../test/fakes/scenes/market-fixture.ts';
import { TICKET_LIFETIME_MS } from './stream-ticket.ts';

let market: TestMarket;
let account: TestAccount;
let podId = '';
let base = '';

beforeEach(async () => {
  market = await createTestMarket();
  const node = await market.verifiedNode();
  account = await market.renter();
  podId = (await market.rent(account, node.id)).body.id;
  await market.sync();
  base = `${await market.server.listen({ host: '127.0.0.1', port: 0 })}/api`;
});
afterEach(() => market.close());

const ask = (headers: Record<string, string> = account.key) =>
  market.call('POST', `/pods/${podId}/stream-ticket`, { headers });
const open = (ticket: string) => upgrade(`${base}/pods/${podId}/logs?ticket=${ticket}`);

it('accepts a ticket for one stream before it expires', async () => {
  const { ticket } = (await ask()).body;
  expect((await open(ticket)).status).toBe(101);
  expect(await open(ticket)).toMatchObject({ status: 401, code: 'unauthorized' });
  const late = (await ask(account.session)).body.ticket;
  await market.clock.advance(TICKET_LIFETIME_MS);
  expect(await open(late)).toMatchObject({ status: 401, code: 'unauthorized' });
  expect(await open('nothing')).toMatchObject({ status: 401, code: 'unauthorized' });
});

it('accepts a ticket once, by any process that uses the database', async () => {
  const { ticket } = (await ask()).body;
  const { db } = market.ports;
  const other = await createTestMarket({ db, agents: market.agents, clock: market.clock });
  const otherBase = `${await other.server.listen({ host: '127.0.0.1', port: 0 })}/api`;
  const path = `/pods/${podId}/logs?ticket=${ticket}`;
  const opened = await Promise.all(
    [otherBase, base, otherBase, base].map((at) => upgrade(`${at}${path}`)),
  );
  expect(opened.map(({ status }) => status).toSorted()).toEqual([101, 401, 401, 401]);
  await other.central.close();
});

it('stores only the hash of a ticket beside the encrypted credential, and deletes expired tickets', async () => {
  const { ticket } = (await ask()).body;
  const rows = () => market.ports.db.selectFrom('stream_tickets').selectAll().execute();
  const stored = JSON.stringify(await rows());
  expect(stored).toContain(account.id);
  expect([stored.includes(ticket), stored.includes(account.apiKey)]).toEqual([false, false]);
  await market.clock.advance(TICKET_LIFETIME_MS);
  await market.central.sweepAccounts();
  expect(await rows()).toEqual([]);
});

it('deletes expired tickets even if the upload store does not answer', async () => {
  await market.close();
  const refusal = new Error('the bucket does not answer');
  market = await createTestMarket({
    objects: {
      sign: async ({ key }) => ({ url: `https://x/${key}`, headers: {}, publicUrl: null }),
      remove: () => Promise.reject(refusal),
    },
  });
  const [leaver, stayer] = [await market.signUp(), await market.signUp()];
  const body = { file_name: 'a.png', content_type: 'image/png', size_bytes: 1, purpose: 'avatar' };
  await market.call('POST', '/users/presigned-url', { headers: leaver.key, body });
  await market.call('DELETE', '/users/me', { headers: leaver.session });
  await market.call('POST', '/users/me/stream-ticket', { headers: stayer.key });
  const tickets = () => market.ports.db.selectFrom('stream_tickets').selectAll().execute();
  expect(await tickets()).toHaveLength(1);
  await market.clock.advance(TICKET_LIFETIME_MS);
  await expect(market.central.sweepAccounts()).rejects.toMatchObject({ errors: [refusal] });
  expect(await tickets()).toEqual([]);
});

it('rejects a ticket once its credential is revoked', async () => {
  const { ticket } = (await ask()).body;
  const [key] = (await market.call('GET', '/keys', { headers: account.session })).body;
  await market.call('DELETE', `/keys/${key.id}`, { headers: account.session });
  expect((await open(ticket)).status).toBe(401);
});

it('issues tickets only to a caller with a credential and for the caller’s pods, and limits unused tickets', async () => {
  expect((await ask({})).status).toBe(401);
  expect((await ask((await market.signUp()).key)).body.error.code).toBe('pod_not_found');
  const statuses = await Promise.all(Array.from({ length: 55 }, async () => (await ask()).status));
  expect(statuses.filter((status) => status === 200)).toHaveLength(50);
  expect(statuses.filter((status) => status === 429)).toHaveLength(5);
  await market.clock.advance(TICKET_LIFETIME_MS);
  expect((await ask()).status).toBe(200);
});
