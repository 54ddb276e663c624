import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  createTestCentral,
  type TestAccount,
  type TestCentral,
} from '../../../../test/fakes/scenes/central-fixture.ts';

const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000';

let central: TestCentral;
let owner: TestAccount;
beforeEach(async () => {
  central = await createTestCentral();
  owner = await central.signUp();
});
afterEach(() => central.close());

const create = (body: object) => central.call('POST', '/keys', { headers: owner.session, body });
const list = async (headers: Record<string, string>) =>
  (await central.call('GET', '/keys', { headers })).body;

it('lists the key created at sign-up, and shows full keys to sessions only', async () => {
  const row = {
    id: expect.any(String),
    user_id: owner.id,
    name: 'default',
    masked_key: `${owner.apiKey.slice(0, 10)}...${owner.apiKey.slice(-5)}`,
    key: owner.apiKey,
    is_active: true,
    created_at: '2027-01-15T08:00:00.000000',
    updated_at: '2027-01-15T08:00:00.000000',
    expires_at: null,
    last_used: null,
    scopes: null,
    workspace_id: null,
    created_by_user_id: owner.id,
    daily_budget_usd: null,
    max_budget_usd: null,
    spent_today_usd: 0,
    spent_total_usd: 0,
    pod_visibility: 'account',
    pods_count: 0,
  };
  const [shown] = await list(owner.session);
  expect(shown).toEqual(row);
  const hidden = { ...row, key: null, last_used: '2027-01-15T08:00:00.000000' };
  expect(await list(owner.key)).toEqual([hidden]);
  const path = `/keys/${shown.id}`;
  expect((await central.call('GET', path, { headers: owner.key })).body).toEqual(hidden);
  const both = { ...owner.key, ...owner.session };
  expect((await central.call('GET', path, { headers: both })).body.key).toBeNull();
  expect((await central.call('GET', path, { headers: owner.session })).body.key).toBe(owner.apiKey);
});

it('stores neither keys nor passwords in readable form', async () => {
  const { db } = central.ports;
  const stored = JSON.stringify([
    await db.selectFrom('api_keys').selectAll().execute(),
    await db.selectFrom('accounts').selectAll().execute(),
    await db.selectFrom('sessions').selectAll().execute(),
  ]);
  expect(stored).not.toContain(owner.apiKey.slice(10));
  expect(stored).not.toContain(owner.password);
  expect(stored).not.toContain(owner.token);
});

it('creates, renames, expires and deletes keys', async () => {
  const made = await create({
    name: ' ci ',
    expires_at: '2027-01-15T10:00:00+01:00',
    scopes: ['manage', 'read', 'read'],
    max_budget_usd: 5,
  });
  expect(made.body).toMatchObject({
    name: 'ci',
    expires_at: '2027-01-15T09:00:00.000000',
    scopes: ['read', 'manage'],
    daily_budget_usd: null,
    max_budget_usd: 5,
    key: expect.stringMatching(/^sk_/),
  });
  const path = `/keys/${made.body.id}`;
  const patch = (body: object) => central.call('PATCH', path, { headers: owner.session, body });
  await central.clock.advance(1_000);
  expect((await patch({})).body).toEqual({
    ...made.body,
    updated_at: '2027-01-15T08:00:01.000000',
  });
  expect((await patch({ name: 'cd' })).body).toMatchObject({
    name: 'cd',
    expires_at: made.body.expires_at,
  });
  expect((await patch({ name: null, is_active: null })).body).toMatchObject({
    name: 'cd',
    is_active: true,
  });
  const budgets = { daily_budget_usd: 0.5, max_budget_usd: null };
  // Scopes are fixed at creation.
  expect((await patch({ ...budgets, scopes: ['rent'] })).body).toMatchObject({
    ...budgets,
    scopes: ['read', 'manage'],
  });
  expect((await patch({ daily_budget_usd: null })).body.daily_budget_usd).toBeNull();
  expect((await patch({ expires_at: '2027-01-15T08:00:00Z' })).body.is_active).toBe(false);
  expect((await patch({ expires_at: null })).body).toMatchObject({
    is_active: true,
    expires_at: null,
  });
  const removed = await central.call('DELETE', path, { headers: owner.session });
  expect([removed.status, removed.body]).toMatchObject([200, { name: 'cd', is_active: false }]);
  expect(removed.body.key).toBeNull();
  expect(await list(owner.session)).toHaveLength(1);
  for (const method of ['GET', 'PATCH', 'DELETE'] as const) {
    const sent = { headers: owner.session, ...(method === 'PATCH' ? { body: {} } : {}) };
    expect((await central.call(method, path, sent)).status).toBe(404);
  }
});

it.each([
  [{}, 422],
  [{ name: '' }, 422],
  [{ name: 'x', expires_at: 'tomorrow' }, 422],
  [{ name: 'x', expires_at: 5 }, 422],
  [{ name: 'x', expires_at: '2027-01-15T07:59:59Z' }, 400],
  [{ name: 'x', scopes: [] }, 422],
  [{ name: 'x', scopes: ['billing'] }, 422],
  [{ name: 'x', daily_budget_usd: -1 }, 422],
  [{ name: 'x', max_budget_usd: 0.0000001 }, 422],
  [{ name: 'x', scopes: null, daily_budget_usd: 0, max_budget_usd: null }, 200],
  [{ name: 'x', expires_at: null }, 200],
])('answers %j with %i', async (body, status) => {
  expect((await create(body)).status).toBe(status);
});

it('does not let a key create, change or delete keys', async () => {
  const [{ id }] = await list(owner.session);
  const headers = owner.key;
  for (const [method, path, body] of [
    ['POST', '/keys', { name: 'x' }],
    ['PATCH', `/keys/${id}`, { name: 'x' }],
    ['DELETE', `/keys/${id}`, undefined],
    ['DELETE', '/keys/no-uuid', undefined],
  ] as const) {
    const sent = body === undefined ? { headers } : { headers, body };
    const { status, body: answer } = await central.call(method, path, sent);
    expect([method, status, answer.error.code]).toEqual([method, 403, 'forbidden']);
  }
  expect(await list(owner.session)).toHaveLength(1);
});

it('rejects keys of other accounts', async () => {
  const stranger = await central.signUp();
  const [{ id }] = await list(stranger.session);
  for (const path of [`/keys/${id}`, `/keys/${id}/refusals`]) {
    const { status, body } = await central.call('GET', path, { headers: owner.session });
    expect([status, body.error.code]).toEqual([403, 'forbidden']);
  }
  const removed = await central.call('DELETE', `/keys/${id}`, { headers: owner.session });
  expect(removed.status).toBe(403);
  const absent = await central.call('GET', `/keys/${UNKNOWN_ID}`, { headers: owner.session });
  expect([absent.status, absent.body.error.code]).toEqual([404, 'not_found']);
});

it('records the last use once a minute', async () => {
  const lastUsed = async () => (await list(owner.session))[0].last_used;
  const use = () => central.call('GET', '/users/me', { headers: owner.key });
  await use();
  expect(await lastUsed()).toBe('2027-01-15T08:00:00.000000');
  await central.clock.advance(59_999);
  await use();
  expect(await lastUsed()).toBe('2027-01-15T08:00:00.000000');
  await central.clock.advance(1);
  await use();
  expect(await lastUsed()).toBe('2027-01-15T08:01:00.000000');
});

it('shows a key once if retrieval is disabled', async () => {
  await central.close();
  central = await createTestCentral({ apiKeysRetrievable: false });
  owner = await central.signUp();
  expect((await create({ name: 'x' })).body.key).toMatch(/^sk_/);
  for (const row of await list(owner.session)) expect(row.key).toBeNull();
  const rows = await central.ports.db.selectFrom('api_keys').select('key_sealed').execute();
  expect(rows.map((row) => row.key_sealed)).toEqual(['', '']);
});

it('returns the catalogue of scopes, and an empty list of refusals for a key without limits', async () => {
  const { status, body } = await central.call('GET', '/keys/scopes');
  expect([status, body.available]).toEqual([200, true]);
  expect(body.scopes).toMatchObject([
    { scope: 'read', default: true },
    { scope: 'rent', route_families: expect.arrayContaining(['/executors', '/pods']) },
    { scope: 'manage', route_families: expect.arrayContaining(['/templates', '/users']) },
  ]);
  expect(body.money_routes).toEqual([
    '/executors/{executor_uuid}/rent',
    '/executors/rent-by-spec',
    '/users/me/transfer-credits',
    '/users/me/auto-top-up',
  ]);
  const [{ id }] = await list(owner.session);
  const refusals = await central.call('GET', `/keys/${id}/refusals`, { headers: owner.key });
  expect([refusals.status, refusals.body]).toEqual([200, { refusals: [] }]);
});

it('limits the keys of an account', async () => {
  for (let made = 1; made < 100; made += 1) await create({ name: `k${made}` });
  const refused = await create({ name: 'one too many' });
  expect([refused.status, refused.body.error.code]).toEqual([400, 'bad_request']);
  expect(await list(owner.session)).toHaveLength(100);
});
