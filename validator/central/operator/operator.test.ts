import { afterEach, beforeEach, expect, it } from 'vitest';
import type { TestAccount } from '../../../test/fakes/scenes/central-fixture.ts';
import { testSigner } from '../../../test/fakes/scenes/market-fixture.ts';
import {
  createMeteringScene,
  type MeteringScene,
} from '../../../test/fakes/scenes/metering-scene.ts';
import { auditLedger } from '../money/ledger/audit.service.ts';

const MINUTE_MS = 60_000;
const UNKNOWN = '00000000-0000-4000-8000-000000000000';
let scene: MeteringScene;
let operator: TestAccount;
beforeEach(async () => {
  scene = await createMeteringScene();
  operator = await scene.market.signUp();
  await scene.market.setOperator(operator);
});
afterEach(() => scene.close());

function ask(
  method: 'GET' | 'POST',
  path: string,
  body?: object,
  headers: Record<string, string> = operator.session,
) {
  const sent = body === undefined ? {} : { body: body as Record<string, unknown> };
  return scene.market.call(method, `/operator${path}`, { headers, ...sent });
}

const audit = async () => (await ask('GET', '/audit')).body;

/** Runs a pod for a minute, which costs $0.06, and removes it. */
async function endedPod(): Promise<string> {
  const id = await scene.running();
  await scene.live(MINUTE_MS);
  await scene.remove(id);
  await scene.live(MINUTE_MS);
  return id;
}

it('rejects accounts without the role before it validates the request, also after the role was revoked', async () => {
  const paths: ['GET' | 'POST', string][] = [
    ['GET', '/accounts'],
    ['GET', `/accounts/${UNKNOWN}`],
    ['GET', '/audit'],
    ['POST', `/pods/${UNKNOWN}/refund`],
    ['POST', '/providers/unknown/ban'],
    ['POST', '/providers/unknown/unban'],
  ];
  const codes = async (headers: Record<string, string>) => {
    const answers = [];
    for (const [method, path] of paths) {
      // The body is invalid. Operators receive 422, and all others must receive 403 before the validation.
      const body = method === 'POST' ? {} : undefined;
      const { status, body: answer } = await ask(method, path, body, headers);
      answers.push([status, answer.error?.code ?? null]);
    }
    return answers;
  };
  const refused = paths.map(() => [403, 'forbidden']);
  expect(await codes(scene.account.session)).toEqual(refused);
  expect(await codes(scene.account.key)).toEqual(refused);
  expect(await codes({})).toEqual(paths.map(() => [401, 'unauthorized']));
  expect((await codes(operator.key)).map(([status]) => status)).toEqual([
    ...[200, 404, 200, 422, 422, 422],
  ]);
  const me = async () =>
    (await scene.market.call('GET', '/users/me', { headers: operator.key })).body;
  expect((await me()).admin).toBe(true);
  await scene.market.setOperator(operator, false);
  expect((await me()).admin).toBe(false);
  expect(await codes(operator.session)).toEqual(refused);
});

it('requires the scope of the route from an API key of an operator', async () => {
  const body = { name: 'reader', scopes: ['read'] };
  const made = await scene.market.call('POST', '/keys', { headers: operator.session, body });
  const reader = { 'x-api-key': made.body.key as string };
  expect((await ask('GET', '/accounts', undefined, reader)).status).toBe(200);
  const refused = await ask('POST', '/providers/unknown/ban', { reason: 'x' }, reader);
  expect([refused.status, refused.body.message]).toEqual([
    403,
    expect.stringContaining("'manage' scope"),
  ]);
});

it('finds accounts by address, name and id, and returns one account with its balance and pods', async () => {
  const id = await scene.running();
  const find = async (query: string) => (await ask('GET', `/accounts?${query}`)).body;
  const all = await find('limit=1&page=2');
  expect([all.total, all.accounts.length, all.page, all.limit]).toEqual([2, 1, 2, 1]);
  const { email } = scene.account;
  for (const q of [email.toUpperCase(), scene.account.id, email.slice(0, email.indexOf('@'))]) {
    const { accounts } = await find(`q=${encodeURIComponent(q)}`);
    expect(accounts).toMatchObject([{ id: scene.account.id, email, admin: false }]);
  }
  // The wildcards of SQL have no special meaning in a search.
  expect((await find('q=%25')).total).toBe(0);
  expect((await find('q=user_')).total).toBe(0);
  const one = (await ask('GET', `/accounts/${scene.account.id}`)).body;
  expect(one).toMatchObject({
    account: { id: scene.account.id, balance: 10, held: 0.9 },
    pods: [{ id, status: 'RUNNING', gpu_count: 1, charged: 0, refunded: 0, ended_at: null }],
  });
  expect((await ask('GET', `/accounts/${UNKNOWN}`)).body.error.code).toBe('not_found');
});

it('refunds an ended pod once: the platform pays, the provider keeps its earnings, and the ledger balances', async () => {
  const id = await endedPod();
  const before = await scene.ledger();
  const { charged_uusd: charged } = await scene.meter(id);
  const refund = (body: object, headers: Record<string, string> = {}) =>
    ask('POST', `/pods/${id}/refund`, body, { ...operator.session, ...headers });
  const once = { 'idempotency-key': 'refund-1' };
  const body = { amount: 0.02, reason: 'the image did not start' };
  const done = await refund(body, once);
  expect([done.status, done.body]).toMatchObject([
    200,
    { pod_id: id, account_id: scene.account.id, amount: 0.02 },
  ]);
  const repeated = await refund(body, once);
  expect([repeated.headers['idempotent-replayed'], repeated.body]).toEqual(['true', done.body]);
  const after = await scene.ledger();
  expect(after).toMatchObject({ provider: before['provider'], 'clearing:refund': 0 });
  expect((after['platform:fee'] ?? 0) - (before['platform:fee'] ?? 0)).toBe(-20_000);
  expect((await scene.me()).balance).toBeCloseTo(10 - charged / 1e6 + 0.02, 6);
  const statement = (await scene.call('GET', `/pods/${id}/statement`)).body;
  expect([statement.refunded, statement.lines.at(-1)]).toMatchObject([
    0.02,
    { state: 'refund', cause: 'operator_refund', amount: -0.02 },
  ]);
  const again = await refund(body);
  expect([again.status, again.body.error.code]).toEqual([409, 'conflict']);
  expect((await audit())[0]).toMatchObject({
    operator: operator.id,
    action: 'pod.refund',
    subject_type: 'pod',
    subject_id: id,
    reason: 'the image did not start',
  });
  expect((await auditLedger(scene.db)).findings).toEqual([]);
});

it('refunds the whole charge if no amount is given, and rejects refunds that are not possible', async () => {
  const live = await scene.running();
  const refund = (id: string, body: object) => ask('POST', `/pods/${id}/refund`, body);
  const code = async (id: string, body: object) => (await refund(id, body)).body.error.code;
  const reason = 'the node was lost';
  await scene.live(MINUTE_MS);
  expect(await code(live, { reason })).toBe('pod_state_conflict');
  await scene.remove(live);
  await scene.live(MINUTE_MS);
  expect(await code(UNKNOWN, { reason })).toBe('pod_not_found');
  expect(await code(live, { reason, amount: 5 })).toBe('bad_request');
  expect((await refund(live, { amount: 0.01 })).status).toBe(422);
  expect((await refund(live, { reason: ' ' })).status).toBe(422);
  // A misspelt amount must not cause a refund of the whole charge.
  expect((await refund(live, { reason, amuont: 0.01 })).status).toBe(422);
  expect(await audit()).toHaveLength(1);
  expect((await refund(live, { reason })).status).toBe(200);
  expect((await scene.me()).balance).toBe(10);
  expect((await auditLedger(scene.db)).findings).toEqual([]);
});

it('does not change the billing history of the provider', async () => {
  const id = await endedPod();
  const token = await scene.market.logIn();
  const billing = async () => (await scene.market.portal('GET', '/billing', { token })).body.data;
  const before = await billing();
  expect(before).toMatchObject([{ status: 'pending', gross_usd: expect.any(Number) }]);
  const byNode = async () => (await scene.market.portal('GET', '/billing/nodes', { token })).body;
  const { executor_id, gpu_type, seconds, gross_usd, fee_usd, net_usd } = before[0];
  const sum = { seconds, gross_usd, fee_usd, net_usd };
  const sums = { data: [{ executor_id, gpu_type, ...sum }], sum, total: 1, page: 1 };
  expect(gross_usd).toBeGreaterThan(net_usd);
  expect(await byNode()).toMatchObject(sums);
  expect((await ask('POST', `/pods/${id}/refund`, { reason: 'goodwill' })).status).toBe(200);
  expect(await billing()).toEqual(before);
  expect(await byNode()).toMatchObject(sums);
  const stranger = await scene.market.logIn(testSigner(9));
  const none = await scene.market.portal('GET', '/billing/nodes', { token: stranger });
  expect(none.body).toMatchObject({ data: [], total: 0, sum: { seconds: 0, net_usd: 0 } });
});

it('returns at most the amount that the renter paid if the platform paid a part of the charge', async () => {
  const id = await endedPod();
  const { charged_uusd: charged } = await scene.meter(id);
  // Simulates that the money ran out before the last third of the charge.
  const absorbed = charged / 3;
  await scene.db
    .updateTable('usage_meters')
    .set({ absorbed_uusd: absorbed, granted_uusd: charged - absorbed })
    .where('pod_id', '=', id)
    .execute();
  const shown = (await ask('GET', `/accounts/${scene.account.id}`)).body.pods[0];
  expect(shown.refundable).toBe((charged - absorbed) / 1e6);
  const refund = (amount?: number) =>
    ask('POST', `/pods/${id}/refund`, { reason: 'x', ...(amount === undefined ? {} : { amount }) });
  expect((await refund(charged / 1e6)).body.error.code).toBe('bad_request');
  const { balance } = await scene.me();
  expect((await refund(0.03)).body.amount).toBe(0.03);
  expect((await scene.me()).balance).toBeCloseTo(balance + 0.03, 6);
  const after = (await ask('GET', `/accounts/${scene.account.id}`)).body.pods[0];
  expect(after.refundable).toBe(0);
});

it('refunds a pod once, also for concurrent requests', async () => {
  const id = await endedPod();
  const requests = Array.from({ length: 10 }, (_, at) =>
    ask('POST', `/pods/${id}/refund`, { reason: `request ${at}` }),
  );
  const statuses = (await Promise.all(requests)).map(({ status }) => status);
  expect(statuses.toSorted()).toEqual([200, ...Array(9).fill(409)]);
  expect(await audit()).toHaveLength(2);
  expect((await scene.me()).balance).toBe(10);
});

it('returns the pods of an account in pages', async () => {
  const ids = [await endedPod(), await endedPod(), await endedPod()];
  const page = async (number: number) =>
    (await ask('GET', `/accounts/${scene.account.id}?limit=2&page=${number}`)).body;
  const [first, second] = [await page(1), await page(2)];
  expect([first.total, second.total]).toEqual([3, 3]);
  const shown = [...first.pods, ...second.pods].map(({ id }: { id: string }) => id);
  expect(shown).toEqual(ids.toReversed());
});

it('bans and unbans a provider with an audit entry for each call', async () => {
  const { hotkey } = scene.market.provider;
  const change = (act: string, reason: string, of: string = hotkey) =>
    ask('POST', `/providers/${of}/${act}`, { reason });
  expect((await change('ban', 'sold cards that do not exist')).body).toEqual({
    hotkey,
    banned: true,
    changed: true,
  });
  expect((await change('ban', 'again')).body.changed).toBe(false);
  const refused = await scene.market.rent(scene.account, scene.node.id, { gpu_count: 1 });
  expect([refused.status, refused.body.error.code]).toEqual([409, 'provider_banned']);
  expect((await change('unban', 'proved the cards')).body).toMatchObject({ banned: false });
  expect((await change('ban', 'x', 'unknown')).body.error.code).toBe('not_found');
  expect(await audit()).toMatchObject([
    { operator: operator.id, action: 'provider.unban', reason: 'proved the cards' },
    { action: 'provider.ban', reason: 'again' },
    { action: 'provider.ban', subject_type: 'provider' },
    { operator: 'ann', action: 'operator.grant', reason: 'runs support' },
  ]);
  expect((await ask('GET', '/audit?limit=1')).body).toHaveLength(1);
});
