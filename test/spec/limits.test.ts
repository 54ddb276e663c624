/** Tests values at the limits of the interface and just beyond. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { TestAccount } from '../fakes/scenes/central-fixture.ts';
import { createTestMarket, type TestMarket } from '../fakes/scenes/market-fixture.ts';
import { setAvailable } from '../fakes/scenes/wallet.ts';
import { Description } from './described.ts';

const NOWHERE = '00000000-0000-4000-8000-000000000000';
const DAY_MS = 86_400_000;

let market: TestMarket;
let account: TestAccount;
beforeAll(async () => {
  market = await createTestMarket();
  account = await market.renter();
});
afterAll(() => market.close());

/** Returns the error code, or `node_not_found` for a body that passed every check before the node is read. */
async function rentCode(body: Record<string, unknown>, headers: Record<string, string> = {}) {
  return (await market.rent(account, NOWHERE, body, headers)).body.error.code;
}

it.each([
  ['', 'idempotency_key_invalid'],
  ['a', 'node_not_found'],
  ['a'.repeat(255), 'node_not_found'],
  ['a'.repeat(256), 'idempotency_key_invalid'],
  ['-_.:aZ09', 'node_not_found'],
  ['a/b', 'idempotency_key_invalid'],
])('accepts idempotency keys of 1 to 255 valid characters: %#', async (key, code) => {
  expect(await rentCode({ pod_name: key.slice(0, 20) || 'x' }, { 'idempotency-key': key })).toBe(
    code,
  );
});

it('repeats the response for an Idempotency-Key for exactly 24 hours', async () => {
  const node = await market.verifiedNode({ gpus: 2, minimum: 1 });
  const key = { 'idempotency-key': 'window' };
  const rent = () => market.rent(account, node.id, { gpu_count: 1 }, key);
  const first = await rent();
  await market.clock.advance(DAY_MS - 1);
  expect((await rent()).headers['idempotent-replayed']).toBe('true');
  await market.clock.advance(1);
  const fresh = await rent();
  expect([fresh.headers['idempotent-replayed'], fresh.body.id === first.body.id]).toEqual([
    undefined,
    false,
  ]);
});

it.each([
  [0.99, 'ttl_invalid'],
  [1, 200],
  [720, 200],
  [720.01, 'ttl_invalid'],
])('accepts rentals of 1 to 720 hours: %d', async (hours, expected) => {
  const node = await market.verifiedNode({ gpus: 1 });
  const { status, body } = await market.rent(account, node.id, { termination_hours: hours });
  expect(status === 200 ? status : body.error.code).toBe(expected);
});

it('a rental requires exactly the price of 15 minutes, to the micro-dollar', async () => {
  const node = await market.verifiedNode({ gpus: 1, price: 2 });
  const renter = await market.renter();
  const have = (balance: number) => setAvailable(market.ports.db, balance, renter.id);
  await have(499_999);
  expect((await market.rent(renter, node.id)).body.error.code).toBe('insufficient_balance');
  await have(500_000);
  expect((await market.rent(renter, node.id)).status).toBe(200);
});

it.each([
  ['a'.repeat(7), false],
  ['a'.repeat(8), true],
  ['A0._:-'.repeat(10), true],
  ['a'.repeat(64), true],
  ['a'.repeat(65), false],
  [`${'a'.repeat(20)} `, false],
])('accepts request ids of 8 to 64 valid characters: %#', async (id, isAccepted) => {
  const { headers } = await market.call('GET', '/machines', { headers: { 'x-request-id': id } });
  expect(headers['x-request-id'] === id).toBe(isAccepted);
});

it('returns 100 lines of a log by default, and up to 1000 nodes a page', async () => {
  const { body } = await market.call('GET', '/openapi.json');
  const { paths } = Description.parse(body);
  const parameter = (path: string, name: string) =>
    paths[path]?.['get']?.parameters.find((entry) => entry.name === name)?.schema;
  expect(parameter('/pods/{pod_id}/logs', 'tail')).toMatchObject({ default: 100, minimum: 0 });
  expect(parameter('/executors', 'size')).toMatchObject({ maximum: 1000 });
  expect((await market.call('GET', '/executors?size=1000')).status).toBe(200);
  expect((await market.call('GET', '/executors?size=1001')).status).toBe(422);
});

it.each(['-1', '30.1', 'x'])('the sleep route accepts 0 to 30 seconds, not %s', async (seconds) => {
  expect((await market.call('GET', `/sleep/${seconds}`)).status).toBe(422);
});

it('lists 1 to 100 restores a page, 20 by default, starting at page 1', async () => {
  const node = await market.verifiedNode({ gpus: 1 });
  const { id } = (await market.rent(account, node.id)).body;
  const list = (query: string) =>
    market.call('GET', `/pods/${id}/restore-logs?${query}`, { headers: account.key });
  expect((await list('')).body).toMatchObject({ items: [], page: 1, limit: 20 });
  const statuses = ['page=1&limit=1', 'limit=100', 'page=0', 'limit=0', 'limit=101', 'limit=x'].map(
    async (query) => (await list(query)).status,
  );
  expect(await Promise.all(statuses)).toEqual([200, 200, 422, 422, 422, 422]);
});
