/** Hidden rentals through the real central API: kills, budgets, refusals and occupied nodes. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createTestMarket, type TestMarket } from '../../test/fakes/scenes/market-fixture.ts';
import { createTestStore } from '../../test/fakes/scenes/test-evidence-store.ts';
import { setAvailable } from '../../test/fakes/scenes/wallet.ts';
import { readCheckPolicy } from '../checks/check-policy.ts';
import type { EvidenceStore } from '../store/tables.ts';
import { insertWaiting } from './hidden-rental.store.ts';
import { createHiddenRentals, type HiddenRentalsOptions } from './hidden-rentals.service.ts';
import { LoginFailed } from './openssh-login.ts';
import { ORDINARY_USE, type OrdinaryUse } from './ordinary-use.ts';
import { createRenterClient } from './renter-client.ts';

const BALANCE_UUSD = 1_000_000_000;
const log = createLog({ name: 'test', level: 'silent' });
const policy = { ...readCheckPolicy(), hidden_rentals_per_day: 0 };

let store: EvidenceStore;
let market: TestMarket;
let node: { id: string };
let baseUrl: string;
let apiKey: string;

beforeEach(async () => {
  store = await createTestStore();
  market = await createTestMarket();
  node = await market.verifiedNode({ gpus: 2 });
  apiKey = (await market.signUp()).key['x-api-key'] ?? '';
  await setAvailable(market.ports.db, BALANCE_UUSD);
  baseUrl = `${await market.server.listen({ host: '127.0.0.1', port: 0 })}/api`;
});
afterEach(async () => {
  await market.close();
  await store.destroy();
});

function rentalsOf(change: Partial<HiddenRentalsOptions> = {}) {
  const { clock } = market;
  return createHiddenRentals({
    store,
    clock,
    random: systemRandom,
    log,
    policy,
    use: USE,
    readAccounts: () => ({ secret: 's'.repeat(32), accounts: [{ name: 'one', api_key: apiKey }] }),
    clientOf: (
      account, // Requests take real time while the manual clock advances.
    ) => createRenterClient({ baseUrl, apiKey: account.api_key, clock: systemClock }),
    logIn: () => ({ run: refuse, send: refuse, end: () => undefined }),
    listed: () => [node.id],
    usdPerDay: 1_000,
    holdsLease: async () => true,
    ...change,
  });
}

const refuse = () => Promise.reject(new LoginFailed('refused'));

/** Waits shorter than those of real rentals. */
const USE: OrdinaryUse = {
  ...ORDINARY_USE,
  between_measurements_ms: [240_000, 300_000],
  linger_ms: [0, 1_000],
};

/** Records a successful rental of another node. */
async function recordOther(): Promise<void> {
  const nowMs = market.clock.now();
  const facts = { mismatches: [], seen_once: [], down_kbit: null, ended_ms: nowMs };
  await insertWaiting(store, { id: 'other', executorId: 'other', dueMs: nowMs });
  const times = { started_ms: nowMs, ended_ms: nowMs, result_json: JSON.stringify(facts) };
  await store.updateTable('hidden_rentals').set(times).execute();
}

const rows = () => store.selectFrom('hidden_rentals').selectAll().execute();
const pods = () => market.ports.db.selectFrom('pods').selectAll().execute();
const apart = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits until `isDone`, while the central API's pods follow their agents. */
async function until(isDone: () => Promise<boolean>): Promise<void> {
  for (let turn = 0; turn < 200; turn += 1) {
    if (await isDone()) return;
    await market.sync();
    await market.clock.advance(60_000);
    await apart(20);
  }
  throw new Error('it did not happen');
}

it('records the request before it rents, and shows the central API an ordinary rental', async () => {
  const rentals = rentalsOf();
  expect(await rentals.rentInFirstFreeMoment(node.id)).toBe(true);
  expect(await rentals.rentInFirstFreeMoment(node.id)).toBe(false);
  await rentals.runOnce();
  await until(async () => (await pods()).length === 1);
  const [row] = await rows();
  expect(row).toMatchObject({ executor_id: node.id, account: 'one', ended_ms: null });
  expect(row?.cost_uusd).toBeGreaterThan(0);
  const [pod] = await pods();
  expect(pod?.pod_name).toBe(JSON.parse(row?.request_json ?? '').pod_name);
  expect([pod?.source, pod?.client_version]).toEqual(['programmatic', null]);
  await rentals.close();
});

it.each([
  ['as a mismatch if another node was reached lately', true],
  ['only as seen once if no other node was reached', false],
])('counts two refused logins while the pod runs %s, and ends the rental', async (_, isReached) => {
  if (isReached) await recordOther();
  const rentals = rentalsOf();
  await rentals.rentInFirstFreeMoment(node.id);
  await rentals.runOnce();
  expect(await rentals.facts(node.id)).toBeNull();
  await until(async () => (await rows()).every(({ ended_ms: endedMs }) => endedMs !== null));
  const facts = await rentals.facts(node.id);
  const mismatch = { fact: 'login', offered: 'SSH', seen: ['refused', 'refused'] };
  expect(facts?.mismatches).toEqual(isReached ? [mismatch] : []);
  expect(facts?.seen_once).toEqual(isReached ? [] : ['login']);
  const states = (await pods()).map(({ state }) => state);
  expect(states.every((state) => state === 'deleting' || state === 'deleted')).toBe(true);
});

it.each([
  ['before the answer of the central API', null],
  ['while the pod exists', 'pod'],
])('ends a rental that a process left %s, and rents no second pod', async (_, left) => {
  const first = rentalsOf();
  await first.rentInFirstFreeMoment(node.id);
  await first.runOnce();
  await until(async () => (await rows())[0]?.pod_id !== null);
  await first.close();
  if (left === null) await store.updateTable('hidden_rentals').set({ pod_id: null }).execute();
  const second = rentalsOf();
  await second.runOnce();
  const [row] = await rows();
  expect(row?.ended_ms).not.toBeNull();
  expect(row?.result_json).toBeNull();
  const [pod, ...others] = await pods();
  expect(others).toEqual([]);
  expect(['deleting', 'deleted']).toContain(pod?.state);
});

it('waits for the first free moment of an occupied node', async () => {
  const account = await market.renter();
  await setAvailable(market.ports.db, BALANCE_UUSD);
  const { body } = await market.rent(account, node.id);
  const rentals = rentalsOf();
  await rentals.rentInFirstFreeMoment(node.id);
  await rentals.runOnce();
  expect((await rows())[0]?.started_ms).toBeNull();
  await market.call('DELETE', `/pods/${body.id}`, { headers: account.key });
  await until(async () => (await pods()).every(({ state }) => state === 'deleted'));
  await market.report(node as Parameters<TestMarket['report']>[0]);
  await rentals.runOnce();
  expect((await rows())[0]?.started_ms).not.toBeNull();
  await rentals.close();
});

it('rents nothing beyond the budget of the day, and nothing without accounts', async () => {
  const poor = rentalsOf({ usdPerDay: 0.001 });
  await poor.rentInFirstFreeMoment(node.id);
  await poor.runOnce();
  const off = rentalsOf({ readAccounts: () => null });
  await off.runOnce();
  expect((await rows())[0]?.started_ms).toBeNull();
  expect(await pods()).toEqual([]);
  expect(off.state()).toMatch(/^off/);
});

it('waits again after a refused request', async () => {
  await setAvailable(market.ports.db, 0);
  const rentals = rentalsOf();
  await rentals.rentInFirstFreeMoment(node.id);
  await rentals.runOnce();
  await rentals.settled();
  const [row] = await rows();
  expect([row?.started_ms, row?.cost_uusd, row?.ended_ms]).toEqual([null, 0, null]);
  expect(row?.due_ms).toBeGreaterThan(market.clock.now());
});

it('schedules a rental of each listed node in each interval, until the policy stops that', async () => {
  const rentals = rentalsOf({ policy: { ...policy, hidden_rentals_per_day: 24 }, usdPerDay: 0 });
  const steps = 36;
  for (let step = 0; step < steps; step += 1) {
    await market.clock.advance((3 * 3_600_000) / steps);
    await rentals.runOnce();
    await store.updateTable('hidden_rentals').set({ ended_ms: market.clock.now() }).execute();
  }
  // Three hours have two whole intervals at least, and parts of two others.
  const { length } = await rows();
  expect([2, 3, 4]).toContain(length);
});
