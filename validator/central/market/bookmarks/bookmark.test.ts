import { afterEach, beforeEach, expect, it } from 'vitest';
import type { TestAccount } from '../../../../test/fakes/scenes/central-fixture.ts';
import {
  createTestMarket,
  flatRefusal as flat,
  type TestMarket,
} from '../../../../test/fakes/scenes/market-fixture.ts';

const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000';

let market: TestMarket;
let account: TestAccount;
let call: ReturnType<TestMarket['below']>;
beforeEach(async () => {
  market = await createTestMarket();
  account = await market.renter();
  call = market.below('/bookmark', account);
});
afterEach(() => market.close());

const answer = (executor_id: string, is_bookmarked: boolean) => ({
  status: 200,
  body: { success: true, executor_id, is_bookmarked },
});

it('sets, lists and removes bookmarks idempotently', async () => {
  const node = await market.verifiedNode();
  for (const body of [{ executor_id: node.id }, { executor_id: node.id, bookmarked: true }]) {
    expect(await call('POST', '', body)).toMatchObject(answer(node.id, true));
  }
  const [row] = (await market.call('GET', '/executors', { headers: account.key })).body;
  const listed = await call('GET', '', undefined, account.session);
  expect(listed.body).toEqual([
    {
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      executor_id: node.id,
      created_at: expect.stringMatching(/^2027-01-15T08:00:0\d\.000000$/),
      executor: { ...row, is_bookmarked: true },
    },
  ]);
  for (const remove of [
    () => call('POST', '', { executor_id: node.id, bookmarked: false }),
    () => call('DELETE', `/${node.id}`),
  ]) {
    expect(await remove()).toMatchObject(answer(node.id, false));
    expect((await call('GET')).body).toEqual([]);
    expect(await remove()).toMatchObject(answer(node.id, false));
    await call('POST', '', { executor_id: node.id });
  }
});

it('serves the same routes at /bookmarks', async () => {
  const node = await market.verifiedNode();
  const sent = { headers: account.key };
  const added = { ...sent, body: { executor_id: node.id } };
  expect(await market.call('POST', '/bookmarks', added)).toMatchObject(answer(node.id, true));
  expect((await market.call('GET', '/bookmarks', sent)).body).toEqual((await call('GET')).body);
  const removed = await market.call('DELETE', `/bookmarks/${node.id}`, sent);
  expect(removed).toMatchObject(answer(node.id, false));
  expect((await market.call('GET', '/bookmarks')).body).toEqual(flat('API key header is missing'));
});

it('shows the current state of a bookmarked node, and retains bookmarks of removed nodes', async () => {
  const node = await market.verifiedNode({ gpus: 1 });
  await call('POST', '', { executor_id: node.id });
  await market.rent(account, node.id);
  const seen = async () => (await call('GET')).body[0].executor;
  expect(await seen()).toMatchObject({
    status: 'unavailable',
    active: true,
    available_gpu_count: 0,
    is_bookmarked: true,
  });
  const change = { state: 'failed' as const };
  await market.ports.db.updateTable('executors').set(change).execute();
  expect(await seen()).toMatchObject({ status: 'unavailable', active: false });
  const removed = { state: 'removed' as const };
  await market.ports.db.updateTable('executors').set(removed).execute();
  expect((await call('GET')).body).toMatchObject([{ executor_id: node.id, executor: null }]);
  const refused = await call('POST', '', { executor_id: node.id });
  expect([refused.status, refused.body]).toEqual([404, flat(`There is no node ${node.id}`)]);
  expect(await call('DELETE', `/${node.id}`)).toMatchObject(answer(node.id, false));
  expect((await call('GET')).body).toEqual([]);
});

it('hides the bookmarks of an account from other accounts', async () => {
  const node = await market.verifiedNode();
  await call('POST', '', { executor_id: node.id });
  const stranger = await market.signUp();
  expect((await call('GET', '', undefined, stranger.key)).body).toEqual([]);
  await call('DELETE', `/${node.id}`, undefined, stranger.key);
  expect((await call('GET')).body).toHaveLength(1);
});

it('returns flat errors', async () => {
  const unknown = await call('POST', '', { executor_id: UNKNOWN_ID });
  expect([unknown.status, unknown.body]).toEqual([404, flat(`There is no node ${UNKNOWN_ID}`)]);
  for (const body of [{}, { executor_id: 7 }, { executor_id: UNKNOWN_ID, bookmarked: 'no' }, []]) {
    const wrong = await call('POST', '', body);
    expect([wrong.status, wrong.body]).toEqual([
      422,
      flat(expect.stringMatching(/^Request validation failed: body(\.\w+)?: ./)),
    ]);
  }
  expect((await call('DELETE', '/7')).body).toEqual(
    flat('Request validation failed: path.executor_id: "7" is not a UUID'),
  );
  const anonymous = await call('POST', '', {}, {});
  expect([anonymous.status, anonymous.body]).toEqual([401, flat('API key header is missing')]);
  const put = await market.call('PUT', '/bookmark', { headers: account.key });
  expect([put.status, put.body]).toEqual([405, flat('This path does not take PUT')]);
});

it('applies a request once for an Idempotency-Key', async () => {
  const node = await market.verifiedNode();
  const key = { ...account.key, 'idempotency-key': 'k' };
  const first = await call('POST', '', { executor_id: node.id }, key);
  await call('DELETE', `/${node.id}`);
  const again = await call('POST', '', { executor_id: node.id }, key);
  expect([again.body, again.headers['idempotent-replayed']]).toEqual([first.body, 'true']);
  expect((await call('GET')).body).toEqual([]);
  const other = await call('POST', '', { executor_id: node.id, bookmarked: false }, key);
  expect([other.status, other.body]).toEqual([422, flat(expect.any(String))]);
  const missing = { ...account.key, 'idempotency-key': 'missing' };
  for (const replayed of [undefined, 'true']) {
    const refused = await call('POST', '', { executor_id: UNKNOWN_ID }, missing);
    expect(refused.body).toEqual(flat(`There is no node ${UNKNOWN_ID}`));
    expect(refused.headers['idempotent-replayed']).toBe(replayed);
  }
});

it('limits an account to 1000 bookmarks', async () => {
  const { db } = market.ports;
  const [kept, one, other] = [
    await market.verifiedNode(),
    await market.verifiedNode(),
    await market.verifiedNode(),
  ];
  await call('POST', '', { executor_id: kept.id });
  const node = await db
    .selectFrom('executors')
    .selectAll()
    .where('id', '=', kept.id)
    .executeTakeFirstOrThrow();
  const nodes = Array.from({ length: 998 }, (_, index) => ({
    ...node,
    id: `node-${index}`,
    port: 10_000 + index,
    inventory_json: null,
  }));
  const marks = nodes.map(({ id }) => ({
    account_id: account.id,
    executor_id: id,
    id,
    created_at: 1,
  }));
  for (let from = 0; from < nodes.length; from += 499) {
    await db
      .insertInto('executors')
      .values(nodes.slice(from, from + 499))
      .execute();
    await db
      .insertInto('bookmarks')
      .values(marks.slice(from, from + 499))
      .execute();
  }
  const added = await Promise.all(
    [one, other].map(({ id }) => call('POST', '', { executor_id: id })),
  );
  expect(added.map(({ status }) => status).toSorted()).toEqual([200, 400]);
  const refused = added.find(({ status }) => status === 400);
  expect(refused?.body).toEqual(flat('An account has at most 1000 bookmarks'));
  // An existing bookmark counts only once.
  expect((await call('POST', '', { executor_id: kept.id })).status).toBe(200);
  const filtered = await market.call('GET', '/executors?bookmarked=true', { headers: account.key });
  expect(filtered.body).toHaveLength(1_000);
});

it('accepts a node id in upper case', async () => {
  const node = await market.verifiedNode();
  const id = node.id.toUpperCase();
  const added = await call('POST', '', { executor_id: id });
  expect(added.body).toMatchObject({ executor_id: node.id, is_bookmarked: true });
  expect((await call('DELETE', `/${id}`)).status).toBe(200);
  expect((await call('GET')).body).toEqual([]);
});
