import { afterEach, beforeEach, expect, it } from 'vitest';
import type { TestAccount } from '../../../../test/fakes/scenes/central-fixture.ts';
import {
  createTestMarket,
  flatRefusal as flat,
  type TestMarket,
} from '../../../../test/fakes/scenes/market-fixture.ts';
import { moveMachineRequest } from './machine-request.store.ts';

const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000';
const REQUEST = {
  gpu_class: 'H100',
  gpu_count: 8,
  hourly_budget: 12.5,
  country: 'FR',
  min_vram_gb: 79.5,
  notes: 'for a week\nfrom Monday',
  notify: false,
};

let market: TestMarket;
let account: TestAccount;
let call: ReturnType<TestMarket['below']>;
beforeEach(async () => {
  market = await createTestMarket();
  account = await market.signUp();
  call = market.below('/machine-requests', account);
});
afterEach(() => market.close());

it('stores, lists and cancels requests', async () => {
  const created = await call('POST', '', REQUEST);
  expect([created.status, created.body]).toEqual([
    200,
    {
      ...REQUEST,
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      user_id: account.id,
      status: 'pending',
      fulfilled_executor_id: null,
      created_at: '2027-01-15T08:00:00.000000',
      updated_at: '2027-01-15T08:00:00.000000',
    },
  ]);
  const path = `/${created.body.id}`;
  expect((await call('GET', path)).body).toEqual(created.body);
  await market.clock.advance(1_000);
  const second = await call('POST', '', { gpu_class: ' NVIDIA L40S ', notes: null });
  expect(second.body).toMatchObject({
    gpu_class: 'NVIDIA L40S',
    gpu_count: null,
    hourly_budget: null,
    country: null,
    min_vram_gb: null,
    notes: null,
    notify: true,
  });
  const listed = await call('GET', '', undefined, account.session);
  expect(listed.body).toEqual([created.body, second.body]);

  const gone = { ...created.body, status: 'cancelled', updated_at: '2027-01-15T08:00:01.000000' };
  const cancelled = await call('DELETE', path);
  expect([cancelled.status, cancelled.body]).toEqual([200, gone]);
  expect((await call('GET', path)).body).toEqual(gone);
  const again = await call('DELETE', path);
  expect([again.status, again.body]).toEqual([
    400,
    flat('The machine request is already cancelled'),
  ]);
});

it('does not cancel a fulfilled request, and cancels a pending request once for concurrent calls', async () => {
  const { db } = market.ports;
  const node = await market.verifiedNode();
  const { id } = (await call('POST', '', REQUEST)).body;
  const fulfilment = { fulfilled_executor_id: node.id, updated_at: market.clock.now() };
  expect(await moveMachineRequest(db, id, 'fulfilled', fulfilment)).toBe(true);
  expect(await moveMachineRequest(db, id, 'fulfilled', fulfilment)).toBe(false);
  const refused = await call('DELETE', `/${id}`);
  expect([refused.status, refused.body.message]).toEqual([400, expect.stringMatching(/fulfilled/)]);
  expect((await call('GET', `/${id}`)).body).toMatchObject({
    status: 'fulfilled',
    fulfilled_executor_id: node.id,
  });
  const other = (await call('POST', '', REQUEST)).body;
  const both = await Promise.all([call('DELETE', `/${other.id}`), call('DELETE', `/${other.id}`)]);
  expect(both.map(({ status }) => status).toSorted()).toEqual([200, 400]);
});

it('hides a request from other accounts and from callers without a key', async () => {
  const stranger = await market.signUp();
  const { id } = (await call('POST', '', REQUEST)).body;
  expect((await call('GET', '', undefined, stranger.key)).body).toEqual([]);
  for (const method of ['GET', 'DELETE'] as const) {
    const foreign = await call(method, `/${id}`, undefined, stranger.key);
    expect([foreign.status, foreign.body]).toEqual([
      403,
      flat('This machine request belongs to another account'),
    ]);
    const unknown = await call(method, `/${UNKNOWN_ID}`);
    expect([unknown.status, unknown.body]).toEqual([404, flat('Machine request not found')]);
    expect((await call(method, '/7')).status).toBe(422);
  }
  for (const method of ['GET', 'POST', 'DELETE'] as const) {
    const path = method === 'DELETE' ? `/${id}` : '';
    const anonymous = await call(method, path, method === 'POST' ? {} : undefined, {});
    expect([anonymous.status, anonymous.body]).toEqual([401, flat('API key header is missing')]);
  }
  const wrong = await market.call('PUT', `/machine-requests/${id}`, { headers: account.key });
  expect([wrong.status, wrong.body]).toEqual([405, flat(expect.any(String))]);
  expect((await call('GET', `/${id}`)).body.status).toBe('pending');
});

const flatField = flat(expect.stringMatching(/^Request validation failed: body\.\w+: ./));

it.each([
  [{ gpu_class: undefined }],
  [{ gpu_class: ' ' }],
  [{ gpu_class: 'H100\u001b[31m' }],
  [{ gpu_class: 'x'.repeat(201) }],
  [{ gpu_count: 0 }],
  [{ gpu_count: 65 }],
  [{ gpu_count: 1.5 }],
  [{ gpu_count: '1' }],
  [{ hourly_budget: 0 }],
  [{ hourly_budget: -1 }],
  [{ hourly_budget: 1e300 }],
  [{ min_vram_gb: -1 }],
  [{ notes: 'x'.repeat(1_001) }],
  [{ notes: '\ud800' }],
  [{ notify: 'yes' }],
])('rejects %j', async (change) => {
  const { status, body } = await call('POST', '', { ...REQUEST, ...change });
  expect([status, body]).toEqual([422, flatField]);
  expect((await call('GET')).body).toEqual([]);
});

it('requires a confirmed e-mail address, and repeats the flat error for the same Idempotency-Key', async () => {
  await market.ports.db.updateTable('accounts').set({ email_verified_at: null }).execute();
  const key = { ...account.key, 'idempotency-key': 'k' };
  const refused = await call('POST', '', REQUEST, key);
  const body = flat('Confirm your e-mail address first');
  expect([refused.status, refused.body]).toEqual([403, body]);
  const again = await call('POST', '', REQUEST, key);
  expect([again.status, again.body, again.headers['idempotent-replayed']]).toEqual([
    403,
    body,
    'true',
  ]);
  const malformed = await call('POST', '', {}, { ...account.key, 'idempotency-key': 'a b' });
  expect([malformed.status, malformed.body]).toEqual([
    422,
    flat('The Idempotency-Key header is malformed'),
  ]);
});

it('creates one request for concurrent calls with the same Idempotency-Key', async () => {
  const key = { ...account.key, 'idempotency-key': 'k' };
  const all = await Promise.all(Array.from({ length: 5 }, () => call('POST', '', REQUEST, key)));
  const { body } = await call('POST', '', REQUEST, key);
  for (const answer of all.filter(({ status }) => status === 200)) {
    expect(answer.body).toEqual(body);
  }
  expect((await call('GET')).body).toEqual([body]);
  const other = await call('POST', '', { ...REQUEST, gpu_count: 4 }, key);
  expect(other.status).toBe(422);
});

it('returns the pending request for the same machine, and creates another request after that request is closed', async () => {
  const plain = { gpu_class: 'H100' };
  for (const body of [REQUEST, plain]) {
    await market.clock.advance(1_000);
    const { body: first } = await call('POST', '', body);
    const again = await call('POST', '', { ...body, notes: 'other words' });
    expect([again.status, again.body]).toEqual([200, first]);
  }
  const [{ id }] = (await call('GET')).body;
  expect((await call('GET')).body).toHaveLength(2);
  await call('DELETE', `/${id}`);
  expect((await call('POST', '', REQUEST)).body).toMatchObject({ status: 'pending' });
  expect((await call('GET')).body).toHaveLength(3);
});

it('limits an account to 50 pending requests, also for concurrent calls', async () => {
  const { id } = (await call('POST', '', REQUEST)).body;
  const calls = Array.from({ length: 52 }, (_, index) =>
    call('POST', '', { ...REQUEST, hourly_budget: 100 + index }),
  );
  const refused = (await Promise.all(calls)).filter(({ status }) => status !== 200);
  expect(refused.map(({ status, body }) => [status, body])).toEqual(
    Array.from({ length: 3 }, () => [
      400,
      flat('An account has at most 50 pending machine requests'),
    ]),
  );
  await call('DELETE', `/${id}`);
  expect((await call('POST', '', REQUEST)).status).toBe(200);
  const stranger = await market.signUp();
  expect((await call('POST', '', REQUEST, stranger.key)).status).toBe(200);
});

it('retains the latest 500 closed requests', async () => {
  const { db } = market.ports;
  const { id } = (await call('POST', '', REQUEST)).body;
  const row = await db.selectFrom('machine_requests').selectAll().executeTakeFirstOrThrow();
  const closed = Array.from({ length: 502 }, (_, index) => ({
    ...row,
    id: `closed-${index}`,
    state: 'cancelled' as const,
    updated_at: index,
  }));
  await db.insertInto('machine_requests').values(closed).execute();
  const { id: next } = (await call('POST', '', { ...REQUEST, gpu_count: 4 })).body;
  const left = await db.selectFrom('machine_requests').select('id').execute();
  const ids = new Set(left.map((each) => each.id));
  expect(ids.size).toBe(502);
  expect([id, next, 'closed-2', 'closed-501'].every((each) => ids.has(each))).toBe(true);
});
