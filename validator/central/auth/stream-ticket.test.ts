import { afterEach, beforeEach, expect, it } from 'vitest';
import type { TestAccount } from '../../../test/fakes/central-fixture.ts';
import { createTestMarket, type TestMarket } from '../../../test/fakes/market-fixture.ts';
import { upgrade } from '../../../test/fakes/raw-upgrade.ts';
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

it('opens one stream, for as long as it is fresh', async () => {
  const { ticket } = (await ask()).body;
  expect((await open(ticket)).status).toBe(101);
  expect(await open(ticket)).toMatchObject({ status: 401, code: 'unauthorized' });
  const late = (await ask(account.session)).body.ticket;
  await market.clock.advance(TICKET_LIFETIME_MS);
  expect(await open(late)).toMatchObject({ status: 401, code: 'unauthorized' });
  expect(await open('nothing')).toMatchObject({ status: 401, code: 'unauthorized' });
});

it('is worth nothing once the credential that asked for it is revoked', async () => {
  const { ticket } = (await ask()).body;
  const [key] = (await market.call('GET', '/keys', { headers: account.session })).body;
  await market.call('DELETE', `/keys/${key.id}`, { headers: account.session });
  expect((await open(ticket)).status).toBe(401);
});

it('is not given without a credential, for a foreign pod, or in any number', async () => {
  expect((await ask({})).status).toBe(401);
  expect((await ask((await market.signUp()).key)).body.error.code).toBe('pod_not_found');
  const asked = [];
  for (let n = 0; n < 51; n += 1) asked.push((await ask()).status);
  expect(asked.slice(0, 50).every((status) => status === 200)).toBe(true);
  expect(asked[50]).toBe(429);
  await market.clock.advance(TICKET_LIFETIME_MS);
  expect((await ask()).status).toBe(200);
});
