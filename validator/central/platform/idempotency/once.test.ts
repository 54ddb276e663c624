/** Idempotency-Key on a route of the portal, and on routes that create objects of an account. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  createTestMarket,
  type TestMarket,
  testSigner,
} from '../../../../test/fakes/scenes/market-fixture.ts';

let market: TestMarket;
let token: string;
beforeEach(async () => {
  market = await createTestMarket();
  token = await market.logIn();
});
afterEach(() => market.close());

const NODE = { gpu_type: 'NVIDIA H100 80GB HBM3', ip_address: '127.0.0.1', port: 8_080 };

async function add(body: object, key?: string, by = token) {
  const response = await market.server.inject({
    method: 'POST',
    url: '/portal/executors',
    headers: {
      authorization: `Bearer ${by}`,
      ...(key === undefined ? {} : { 'idempotency-key': key }),
    },
    payload: body,
  });
  return {
    status: response.statusCode,
    text: response.body,
    replayed: response.headers['idempotent-replayed'],
    code: response.json().error?.code,
  };
}

async function nodeCount(): Promise<number> {
  return (await market.ports.db.selectFrom('executors').select('id').execute()).length;
}

it('adds one node per key, and returns the same bytes to a repeated request', async () => {
  const first = await add(NODE, 'k');
  expect([first.status, first.replayed]).toEqual([200, undefined]);
  await market.clock.advance(60_000);
  expect(await add(NODE, 'k')).toEqual({ ...first, replayed: 'true' });
  expect(await nodeCount()).toBe(1);
  // A repeated request without a key is rejected, because the address is in use.
  expect((await add(NODE)).code).toBe('conflict');
});

it('many concurrent requests with one key add one node', async () => {
  const answers = await Promise.all(Array.from({ length: 10 }, () => add(NODE, 'k')));
  for (const { status, code } of answers.filter((answer) => answer.status !== 200)) {
    expect([status, code]).toEqual([409, 'idempotency_in_progress']);
  }
  expect(new Set(answers.filter(({ status }) => status === 200).map(({ text }) => text)).size).toBe(
    1,
  );
  expect(await nodeCount()).toBe(1);
});

it('rejects a request for another node with the same key, and a malformed key', async () => {
  await add(NODE, 'k');
  const other = { ...NODE, port: 8_081 };
  expect(await add(other, 'k')).toMatchObject({ status: 422, code: 'idempotency_key_reused' });
  // The key is checked before the body.
  expect(await add({}, 'not valid')).toMatchObject({
    status: 422,
    code: 'idempotency_key_invalid',
  });
  expect(await nodeCount()).toBe(1);
});

it('stores error responses, too; two providers can use the same key', async () => {
  await add(NODE);
  const taken = await add(NODE, 'k');
  expect(taken.code).toBe('conflict');
  await market.ports.db.deleteFrom('executors').execute();
  expect(await add(NODE, 'k')).toEqual({ ...taken, replayed: 'true' });
  const others = await market.logIn(testSigner(3));
  expect(await add(NODE, 'k', others)).toMatchObject({ status: 200, replayed: undefined });
});

const CREATIONS = [
  ['/templates', { name: 'mine', docker_image: 'ubuntu' }],
  ['/keys', { name: 'for a script' }],
  ['/docker-credentials', { docker_username: 'ada', docker_password: 'hush' }],
  ['/webhooks', { url: 'https://hooks.example.org/events' }],
] as const;

it.each(CREATIONS)(
  'POST %s creates one object per key, and returns its first answer',
  async (path, body) => {
    const { session } = await market.signUp();
    const headers = { ...session, 'idempotency-key': 'k' };
    const create = () =>
      market.server.inject({ method: 'POST', url: `/api${path}`, headers, payload: body });
    const first = await create();
    expect(first.statusCode, first.body).toBeLessThan(300);
    const repeat = await create();
    expect([repeat.statusCode, repeat.body]).toEqual([first.statusCode, first.body]);
    expect(repeat.headers['idempotent-replayed']).toBe('true');
    const list = await market.call('GET', path, { headers: session });
    const ids = list.body.map(({ id }: { id: string }) => id);
    expect(ids.filter((id: string) => id === first.json().id)).toHaveLength(1);
    const { body: other } = await market.call('POST', path, { headers: session, body });
    expect(other.id).not.toBe(first.json().id);
  },
);
