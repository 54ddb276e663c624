import { once } from 'node:events';
import { type AddressInfo, createConnection } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ApiError } from '#shared/runtime/errors.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { eventually } from '../../../../test/fakes/eventually.ts';
import type { TestAccount } from '../../../../test/fakes/scenes/central-fixture.ts';
import {
  type AddedNode,
  createTestMarket,
  DEFAULT_TEMPLATE,
  type TestMarket,
} from '../../../../test/fakes/scenes/market-fixture.ts';
import { setAvailable } from '../../../../test/fakes/scenes/wallet.ts';
import { LEASE_MS } from '../processes.ts';
import { createIdempotency, WINDOW_MS } from './idempotency.ts';

let market: TestMarket;
let node: AddedNode;
let account: TestAccount;

beforeEach(async () => {
  market = await createTestMarket();
  node = await market.verifiedNode({ gpus: 8, minimum: 1 });
  account = await market.renter();
});
afterEach(() => market.close());

const KEY = { 'idempotency-key': 'key-1' };
const ONE = { gpu_count: 1 };

async function podCount(): Promise<number> {
  return (await market.ports.db.selectFrom('pods').select('id').execute()).length;
}

it('20 concurrent requests with one key create one rental', async () => {
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => market.rent(account, node.id, ONE, KEY)),
  );
  const first = answers.filter(
    ({ status, headers }) => status === 200 && headers['idempotent-replayed'] === undefined,
  );
  expect(first).toHaveLength(1);
  for (const answer of answers.filter((other) => other !== first[0])) {
    if (answer.status === 200) {
      expect(answer.headers['idempotent-replayed']).toBe('true');
      expect(answer.body).toEqual(first[0]?.body);
    } else {
      expect(answer.status).toBe(409);
      expect(answer.body.error.code).toBe('idempotency_in_progress');
      expect(answer.headers['retry-after']).toBe('1');
    }
  }
  expect(await podCount()).toBe(1);
});

it('returns the same bytes to a repeated request, for every credential of the account', async () => {
  const first = await market.rent(account, node.id, ONE, KEY);
  const { body } = await market.call('DELETE', `/pods/${first.body.id}`, { headers: account.key });
  expect(body.status).toBe('DELETING');
  const bySession = { ...account, key: account.session } as unknown as TestAccount;
  for (const who of [account, bySession]) {
    const again = await market.rent(who, node.id, ONE, { ...KEY, 'x-source': 'mcp' });
    expect(again.headers['idempotent-replayed']).toBe('true');
    expect(again.headers['content-type']).toBe(first.headers['content-type']);
    expect(again.body).toEqual(first.body);
    expect(again.headers['x-request-id']).not.toBe(first.headers['x-request-id']);
  }
  expect(await podCount()).toBe(1);
});

it('two accounts can use the same key', async () => {
  const other = await market.renter();
  await market.rent(account, node.id, ONE, KEY);
  const { status, headers } = await market.rent(other, node.id, ONE, KEY);
  expect(status).toBe(200);
  expect(headers['idempotent-replayed']).toBeUndefined();
});

it.each([
  ['another body', ONE, { gpu_count: 2 }],
  ['an additional member', ONE, { gpu_count: 1, termination_hours: 2 }],
] as const)('rejects a request with a used key and %s', async (_, before, after) => {
  await market.rent(account, node.id, before, KEY);
  const { status, body } = await market.rent(account, node.id, after, KEY);
  expect(status).toBe(422);
  expect(body.error.code).toBe('idempotency_key_reused');
  const elsewhere = await market.verifiedNode();
  expect((await market.rent(account, elsewhere.id, before, KEY)).status).toBe(422);
});

it('stores error responses with their request id, but not errors that occur before the claim', async () => {
  expect((await market.rent(account, node.id, { gpu_count: 'x' }, KEY)).status).toBe(422);
  await setAvailable(market.ports.db, 0);
  const poor = await market.rent(account, node.id, ONE, KEY);
  expect([poor.status, poor.body.error.hint]).toEqual([
    403,
    'Top up (PUT /users/me/auto-top-up, or a payment that the operator notes with ledger pay-in), then retry; with a new Idempotency-Key if there was one.',
  ]);
  await setAvailable(market.ports.db, 9_000_000);
  const again = await market.rent(account, node.id, ONE, KEY);
  expect(again.status).toBe(403);
  expect(again.headers['idempotent-replayed']).toBe('true');
  expect(again.body).toEqual(poor.body);
  expect(again.body.request_id).toBe(poor.headers['x-request-id']);
});

it('expires a key exactly 24 hours after its first use', async () => {
  const body = { pod_name: 'x', gpu_count: 1 };
  const first = await market.rent(account, node.id, body, KEY);
  await market.clock.advance(WINDOW_MS - 1);
  expect((await market.rent(account, node.id, body, KEY)).body.id).toBe(first.body.id);
  await market.clock.advance(1);
  const later = await market.rent(account, node.id, body, KEY);
  expect(later.headers['idempotent-replayed']).toBeUndefined();
  expect(later.body.id).not.toBe(first.body.id);
});

describe('the claim of a request that is still running', () => {
  /** The process was killed after it stored the claim and before the effects. */
  beforeEach(async () => {
    await market.rent(account, node.id, ONE, KEY);
    const { db } = market.ports;
    await db.deleteFrom('gpu_slots').where('pod_id', 'is not', null).execute();
    await db.deleteFrom('pods').execute();
    await db
      .updateTable('idempotency')
      .set({ state: 'running', boot_id: 'another', status: null, body: null })
      .execute();
    await db
      .insertInto('central_processes')
      .values({ boot_id: 'another', beat_at: market.clock.now() })
      .execute();
  });

  it('is not taken over while the process that stored it is alive', async () => {
    await market.clock.advance(LEASE_MS - 1);
    const answer = await market.rent(account, node.id, ONE, KEY);
    expect([answer.status, answer.body.error.code]).toEqual([409, 'idempotency_in_progress']);
    expect(await podCount()).toBe(0);
  });

  it('is taken over when the process that stored it has not stored a heartbeat for too long', async () => {
    await market.clock.advance(LEASE_MS);
    const answer = await market.rent(account, node.id, ONE, KEY);
    expect([answer.status, answer.headers['idempotent-replayed']]).toEqual([200, undefined]);
    expect(await podCount()).toBe(1);
    expect((await market.rent(account, node.id, ONE, KEY)).body).toEqual(answer.body);
  });
});

describe('a request with a key', () => {
  const answer = { status: 200, body: '{}' };
  const request = { accountId: 'a', route: 'r', key: 'k', fingerprint: 'f' };
  const refusal = (error: ApiError) => ({ status: error.status, body: error.message });

  const processes = { bootId: 'boot', isAlive: async () => true };

  function create() {
    return createIdempotency({
      db: market.ports.db,
      clock: market.clock,
      random: systemRandom,
      processes,
    });
  }

  it('has no effect and releases the key after an internal error', async () => {
    const once = create();
    const broken = once.once({
      ...request,
      refusal,
      effects: async (tx) => {
        await tx
          .insertInto('login_nonces')
          .values({ hotkey: 'h', message: 'm', expires_at: 1 })
          .execute();
        throw new Error('disk full');
      },
    });
    await expect(broken).rejects.toThrow('disk full');
    const nonces = market.ports.db.selectFrom('login_nonces').select('hotkey');
    expect(await nonces.where('hotkey', '=', 'h').execute()).toEqual([]);
    const again = await once.once({ ...request, refusal, effects: async () => answer });
    expect(again).toEqual({ ...answer, replayed: false });
  });

  it('is rejected if its body differs from that of a running request with the same key', async () => {
    const once = create();
    const first = await once.once({ ...request, refusal, effects: async () => answer });
    expect(first.replayed).toBe(false);
    await market.ports.db
      .updateTable('idempotency')
      .set({ state: 'running', boot_id: 'other', status: null, body: null })
      .execute();
    const effects = async () => answer;
    await expect(once.once({ ...request, refusal, effects })).rejects.toThrow('still running');
    const other = once.once({ ...request, fingerprint: 'g', refusal, effects });
    await expect(other).rejects.toMatchObject({ code: 'idempotency_key_reused' });
  });

  it('runs again if its claim could not be deleted after an internal error', async () => {
    const once = create();
    await once.once({ ...request, refusal, effects: async () => answer });
    const running = { state: 'running', status: null, body: null } as const;
    await market.ports.db.updateTable('idempotency').set(running).execute();
    const again = await once.once({ ...request, refusal, effects: async () => answer });
    expect(again).toEqual({ ...answer, replayed: false });
  });

  it('has no effect after its claim was lost', async () => {
    const lost = await create().once({
      ...request,
      refusal,
      effects: async (tx) => {
        const nonce = { hotkey: 'h', message: 'm', expires_at: 1 };
        await tx.insertInto('login_nonces').values(nonce).execute();
        await tx.updateTable('idempotency').set({ boot_id: 'other' }).execute();
        return answer;
      },
    });
    expect(lost.status).toBe(409);
    const nonces = market.ports.db.selectFrom('login_nonces').select('hotkey');
    expect(await nonces.where('hotkey', '=', 'h').execute()).toEqual([]);
  });

  it('cannot reuse the response of an expired key when the clock goes backwards', async () => {
    let nowMs = 1_000_000;
    const clock = { ...market.clock, now: () => nowMs };
    const once = createIdempotency({ db: market.ports.db, clock, random: systemRandom, processes });
    await once.once({ ...request, refusal, effects: async () => answer });
    nowMs += WINDOW_MS;
    await once.sweep(market.ports.db);
    nowMs -= WINDOW_MS;
    const again = await once.once({ ...request, refusal, effects: async () => answer });
    expect(again.replayed).toBe(false);
  });
});

it('does not receive the stored response if the API key was revoked or the account deleted', async () => {
  await market.rent(account, node.id, ONE, KEY);
  const [{ id }] = (await market.call('GET', '/keys', { headers: account.session })).body;
  await market.call('DELETE', `/keys/${id}`, { headers: account.session });
  const again = await market.rent(account, node.id, ONE, KEY);
  expect([again.status, again.headers['idempotent-replayed']]).toEqual([401, undefined]);
  const bySession = { ...account, key: account.session } as unknown as TestAccount;
  const { body: pod } = await market.rent(bySession, node.id, ONE, KEY);
  await market.call('DELETE', `/pods/${pod.id}`, { headers: account.session });
  const removed = await market.call('DELETE', '/users/me', { headers: account.session });
  expect(removed.status).toBe(200);
  expect((await market.rent(bySession, node.id, ONE, KEY)).status).toBe(401);
  expect(await podCount()).toBe(1);
});

it('is independent of a request with the same key on another route', async () => {
  const first = await market.rent(account, node.id, ONE, KEY);
  const wish = { headers: { ...account.key, ...KEY }, body: { pod_name: 'mine', ...ONE } };
  const preference = { default_template_id: DEFAULT_TEMPLATE };
  await market.call('PUT', '/users/me', { headers: account.key, body: { preference } });
  const other = await market.call('POST', '/executors/rent-by-spec', wish);
  expect([other.status, other.headers['idempotent-replayed']]).toEqual([200, undefined]);
  expect(other.body.id).not.toBe(first.body.id);
});

it('is completed even if the client disconnects, and a retry receives the stored response', async () => {
  const { db } = market.ports;
  await market.server.listen({ host: '127.0.0.1', port: 0 });
  const { port } = market.server.server.address() as AddressInfo;
  const body = JSON.stringify({ pod_name: 'mine', template_id: DEFAULT_TEMPLATE, ...ONE });
  const head = [
    ...[`POST /api/executors/${node.id}/rent HTTP/1.1`, 'Host: test'],
    ...[`X-API-Key: ${account.apiKey}`, 'Content-Type: application/json'],
    ...['Idempotency-Key: key-1', `Content-Length: ${Buffer.byteLength(body)}`],
  ];
  const socket = createConnection({ host: '127.0.0.1', port });
  const held = Promise.withResolvers<void>();
  const gone = once(market.server.server, 'request').then(async ([request]) => {
    await once(request, 'end');
    // With one connection (SQLite), the rental waits for this transaction, and the client disconnects meanwhile.
    const holding = db.transaction().execute(() => held.promise);
    const closed = once(request.socket, 'close');
    socket.destroy();
    await closed;
    held.resolve();
    await holding;
  });
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`);
  await gone;
  const claims = db.selectFrom('idempotency').select('state');
  await eventually('the rental', async () => (await claims.execute())[0]?.state === 'finished');
  const again = await market.rent(account, node.id, ONE, KEY);
  expect([again.status, again.headers['idempotent-replayed']]).toEqual([200, 'true']);
  expect(await podCount()).toBe(1);
});
