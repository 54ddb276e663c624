/** Requests that change many rows take effect exactly once, even if their first transaction fails with a conflict. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { createFakeBackupStorage } from '../../../../test/fakes/external/fake-backup-storage.ts';
import { createTestDatabase } from '../../../../test/fakes/scenes/central-database.ts';
import type { TestAccount } from '../../../../test/fakes/scenes/central-fixture.ts';
import {
  type AddedNode,
  createTestMarket,
  type TestMarket,
} from '../../../../test/fakes/scenes/market-fixture.ts';
import { mailsTo } from '../../../../test/fakes/scenes/outbox.ts';
import { watchDatabase } from '../../../../test/fakes/scenes/watched-database.ts';
import type { MinerNode } from '../ports.ts';

const PLACE = { host: 'miner.example', port: 443 };
const DAY_MS = 86_400_000;

let database: ReturnType<typeof watchDatabase>;
let market: TestMarket;
let node: AddedNode;
let renter: TestAccount;
let token: string;
let wanted: MinerNode[] = [];

beforeAll(async () => {
  const replaced = { added: 0, updated: 0, removed: 0 };
  const centralMiner = { list: async () => wanted, replace: async () => replaced };
  database = watchDatabase(await createTestDatabase());
  market = await createTestMarket({
    db: database.db,
    centralMiner: { ...PLACE, ...centralMiner },
    backupStorage: createFakeBackupStorage(),
  });
  node = await market.verifiedNode();
  renter = await market.renter();
  await market.rent(renter, node.id, { gpu_count: 2 });
  token = await market.logIn();
});
afterAll(() => market.close());

const nodes = async () => (await market.portal('GET', '/executors', { token })).body.data;
const ownPath = (what = '') => `/executors/${node.id}${what}`;
const mails = async (kind: string) =>
  (await mailsTo(market, renter.email)).filter((mail) => mail.kind === kind).length;

/** Runs a request whose first write to `table` fails with a conflict, and asserts the result. */
async function losingAt<T extends { status: number }>(
  table: string,
  act: () => Promise<T>,
): Promise<T> {
  database.lose(table);
  const answer = await act();
  expect([answer.status, database.isLosing()]).toEqual([200, false]);
  return answer;
}

it('creates a notice once and cancels it once', async () => {
  const body = {
    starting_at: `${naiveUtc(market.clock.now() + 2 * DAY_MS)}Z`,
    period_in_minute: 30,
  };
  await losingAt('mails', () => market.portal('POST', ownPath('/notice-period'), { token, body }));
  expect(await mails('notice-period')).toBe(1);
  await losingAt('due_work', () => market.portal('DELETE', ownPath('/notice-period'), { token }));
  expect(await mails('notice-period')).toBe(2);
});

it('imports the list of the central miner server and counts each change once', async () => {
  const gpus = { gpuType: 'NVIDIA H100 80GB HBM3', gpuCount: 2 };
  const place = (port: number) => ({ ...gpus, ipAddress: '127.0.0.1', port, usdPerGpuHour: 2.2 });
  const gone = await market.verifiedNode();
  wanted = [place(node.port), place(9_001)];
  const path = '/executors/sync-executor-central-miner';
  const pull = () => market.portal('POST', path, { token, body: {} });
  const { body } = await losingAt('executors', pull);
  expect(body.data ?? body).toMatchObject({ added: 1, removed: 1 });
  const left = (await nodes()).map(({ id }: { id: string }) => id);
  expect([left.length, left.includes(node.id), left.includes(gone.id)]).toEqual([2, true, false]);
});

it('removes a node even if the first transaction fails', async () => {
  const { id } = await market.verifiedNode();
  await losingAt('executors', () => market.portal('DELETE', `/executors/${id}`, { token }));
  expect((await nodes()).some((each: { id: string }) => each.id === id)).toBe(false);
});

it('removes a volume even if the first transaction fails', async () => {
  const headers = renter.key;
  const made = await market.call('POST', '/volumes', { headers, body: { name: 'data' } });
  const path = `/volumes/${made.body.id}`;
  await losingAt('volumes', () => market.call('DELETE', path, { headers }));
  expect((await market.call('GET', '/volumes', { headers })).body).toEqual([]);
});

it('updates an account and sends one mail about the change', async () => {
  const headers = renter.session;
  const body = { email: 'new-address@example.com', current_password: renter.password };
  await losingAt('mails', () => market.call('PUT', '/users/me', { headers, body }));
  expect(await mails('email-changed')).toBe(1);
});

it('deletes an account even if the first transaction fails', async () => {
  const other = await market.renter();
  await losingAt('events', () => market.call('DELETE', '/users/me', { headers: other.session }));
  expect((await market.call('GET', '/users/me', { headers: other.key })).status).toBe(401);
});
