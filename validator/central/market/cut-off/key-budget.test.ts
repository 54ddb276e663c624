/** Tests budgets of API keys: refusals, exact stops, restarts, and the start of a new day. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  createMeteringScene,
  type MeteringScene,
} from '../../../../test/fakes/scenes/metering-scene.ts';
import { payIn } from '../../../../test/fakes/scenes/wallet.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** Time from the clock's start, 08:00, to midnight UTC. */
const TO_MIDNIGHT_MS = 16 * HOUR_MS;

/** A GPU costs one micro-dollar per millisecond, so 15 minutes cost $0.90. */
let scene: MeteringScene;
let key: { id: string; headers: { 'x-api-key': string } };
beforeEach(async () => {
  scene = await createMeteringScene({ signupCreditUusd: 100_000_000, payments: 'simulated' });
});
afterEach(() => scene.close());

async function createKey(limits: object) {
  const body = { name: 'limited', ...limits };
  const { session } = scene.account;
  const made = await scene.market.call('POST', '/keys', { headers: session, body });
  expect(made.status).toBe(200);
  return { id: made.body.id as string, headers: { 'x-api-key': made.body.key as string } };
}

const rent = (body: object = {}, headers = key.headers) =>
  scene.market.rent(scene.account, scene.node.id, { gpu_count: 1, ...body }, headers);

/** Rents with the key and runs the pod, which is charged from now on. */
async function running(): Promise<string> {
  const rented = await rent();
  expect([rented.status, rented.body.message]).toEqual([200, rented.body.message]);
  await scene.market.sync();
  scene.countFromNow();
  return rented.body.id;
}

async function keyRow() {
  const { session } = scene.account;
  return (await scene.market.call('GET', `/keys/${key.id}`, { headers: session })).body;
}

async function patchKey(body: object) {
  const { session } = scene.account;
  const done = await scene.market.call('PATCH', `/keys/${key.id}`, { headers: session, body });
  expect(done.status).toBe(200);
  await scene.market.sync();
}

const refusals = async () => (await scene.call('GET', `/keys/${key.id}/refusals`)).body.refusals;
const statusOf = async (id: string) => (await scene.pod(id)).status;
const charged = async (id: string) => (await scene.meter(id)).charged_uusd;

it.each(['daily_budget_usd', 'max_budget_usd'])(
  'rents no more than %s covers, even for concurrent requests, and lists the refusals',
  async (limit) => {
    key = await createKey({ [limit]: 1.79 });
    const answers = await Promise.all([rent(), rent(), rent({}, { ...key.headers })]);
    const [refused, ...others] = answers.filter(({ status }) => status === 402);
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 402, 402]);
    expect(others).toHaveLength(1);
    expect(refused?.body.error.code).toBe('API_KEY_BUDGET_EXCEEDED');
    expect(refused?.body.message).toContain('It needs $0.90; $0.89 of $1.79 is left');
    expect(await scene.db.selectFrom('pods').select('id').execute()).toHaveLength(1);
    expect(await scene.holds()).toEqual([900_000]);
    expect(await refusals()).toHaveLength(2);
    expect((await refusals())[0]).toEqual({
      id: expect.any(String),
      api_key_id: key.id,
      event: 'budget_exceeded',
      created_at: expect.any(String),
      window: limit === 'daily_budget_usd' ? 'day' : 'total',
      route: 'POST /executors/{executor_uuid}/rent',
      amount_usd: 0.9,
      budget_usd: 1.79,
      spent_usd: 0,
    });
    // The session and other keys of the account are not affected.
    expect((await rent({}, scene.account.key)).status).toBe(200);
  },
);

it('replays a refusal for its Idempotency-Key without listing the refusal again', async () => {
  key = await createKey({ max_budget_usd: 0.5 });
  const headers = { ...key.headers, 'idempotency-key': 'same' };
  const first = await rent({}, headers);
  const second = await rent({}, headers);
  expect([first.status, second.status]).toEqual([402, 402]);
  expect(second.body).toEqual(first.body);
  const spec = { pod_name: 'mine', gpu_count: 1, template_id: first.body.template_id };
  const bySpec = { headers: key.headers, body: { ...spec, dry_run: true } };
  expect((await scene.market.call('POST', '/executors/rent-by-spec', bySpec)).status).toBe(402);
  expect((await refusals()).map(({ route }: { route: string }) => route).toSorted()).toEqual([
    'POST /executors/rent-by-spec',
    'POST /executors/{executor_uuid}/rent',
  ]);
});

it('stops the pods of a key at the instant at which the budget of the key is used up', async () => {
  key = await createKey({ max_budget_usd: 2 });
  const other = await scene.running();
  const id = await running();
  await scene.live(1_999_000);
  expect(await statusOf(id)).toBe('RUNNING');
  await scene.later(999);
  expect(await statusOf(id)).toBe('RUNNING');
  // The schedule runs late, but the charge ends at the instant.
  await scene.market.clock.advance(7_000);
  await scene.tick();
  await scene.market.sync();
  expect(await statusOf(id)).toBe('STOPPED');
  expect(await charged(id)).toBe(2_000_000);
  expect(await statusOf(other)).toBe('RUNNING');
  expect(await keyRow()).toMatchObject({ spent_today_usd: 2, spent_total_usd: 2, pods_count: 1 });
  const row = await scene.db
    .selectFrom('pods')
    .select(['reason_code', 'message'])
    .where('id', '=', id)
    .executeTakeFirstOrThrow();
  expect(row).toEqual({
    reason_code: 'max_spend_reached',
    message: expect.stringContaining('budget of the API key'),
  });

  // A higher limit of the pod does not restart the pod, but a higher budget does.
  const patched = await scene.call('PATCH', `/pods/${id}`, { max_spend_usd: 50 });
  expect([patched.status, patched.body.status]).toEqual([200, 'STOPPED']);
  await patchKey({ max_budget_usd: 2.8 });
  expect(await statusOf(id)).toBe('STOPPED');
  await patchKey({ max_budget_usd: 2.9 });
  expect(['PENDING', 'RUNNING']).toContain(await statusOf(id));
});

it('divides a budget among the pods of a key, and charges no time twice when the budget is lowered', async () => {
  key = await createKey({ max_budget_usd: 4 });
  const ids = [await running(), await running()];
  await scene.live(1_000_000);
  await patchKey({ max_budget_usd: 0.1 });
  expect(await Promise.all(ids.map(statusOf))).toEqual(['STOPPED', 'STOPPED']);
  // Time before the change is charged under the former budget.
  expect((await keyRow()).spent_total_usd).toBe(2);
  await patchKey({ max_budget_usd: null });
  await scene.later();
  expect(await Promise.all(ids.map(statusOf))).not.toContain('STOPPED');
});

it('renews a daily budget at 00:00 UTC, although one settlement spans the two days', async () => {
  await scene.market.clock.advance(TO_MIDNIGHT_MS - 20 * MINUTE_MS);
  key = await createKey({ daily_budget_usd: 1.5 });
  const untilMidnight = () => 86_400_000 - (scene.market.clock.now() % 86_400_000);
  const id = await running();
  const before = untilMidnight();
  await scene.live(before - 5_000);
  await scene.tick();
  // A charge ends at the last contact with the node, some seconds earlier.
  const closeTo = (ms: number) => expect.closeTo(ms / 1e6, 1.5);
  expect((await keyRow()).spent_today_usd).toEqual(closeTo(before - 5_000));
  await scene.live(65_000);
  await scene.tick();
  expect(await keyRow()).toMatchObject({
    spent_today_usd: closeTo(60_000),
    spent_total_usd: closeTo(before + 60_000),
  });
  await scene.live(1_500_000 - 60_000 - 1_000);
  expect(await statusOf(id)).toBe('RUNNING');
  await scene.later(1_000);
  expect(await statusOf(id)).toBe('STOPPED');
  expect(await charged(id)).toBe(before + 1_500_000);
  expect((await keyRow()).spent_today_usd).toBe(1.5);
});

it('starts a stopped pod again if the next day begins within its grace period', async () => {
  await scene.market.clock.advance(TO_MIDNIGHT_MS - 20 * MINUTE_MS);
  key = await createKey({ daily_budget_usd: 1 });
  const id = await running();
  await scene.live(1_000_000);
  expect(await statusOf(id)).toBe('STOPPED');
  const untilMidnight = 86_400_000 - (scene.market.clock.now() % 86_400_000);
  await scene.later(untilMidnight - 1);
  expect(await statusOf(id)).toBe('STOPPED');
  await scene.later(1);
  expect(['PENDING', 'RUNNING']).toContain(await statusOf(id));
});

it('counts transfers of a key, and rejects its request for an auto top-up', async () => {
  key = await createKey({ max_budget_usd: 3 });
  const friend = await scene.market.signUp();
  await payIn(scene.db, scene.account.id, 10_000_000);
  const send = (amount: number, headers: Record<string, string>) =>
    scene.market.call('POST', '/users/me/transfer-credits', {
      headers,
      body: { recipient_email: friend.email, amount },
    });
  expect((await send(2, key.headers)).status).toBe(200);
  expect(await keyRow()).toMatchObject({ spent_today_usd: 2, spent_total_usd: 2 });
  const refused = await send(1.01, key.headers);
  expect([refused.status, refused.body.error.code]).toEqual([402, 'API_KEY_BUDGET_EXCEEDED']);
  expect((await send(1.01, scene.account.key)).status).toBe(200);
  expect((await send(1, key.headers)).status).toBe(200);

  const body = { enabled: true, threshold_usd: 5, amount_usd: 5, payment_method_id: 'sim_ok' };
  const topUp = { headers: key.headers, body };
  const auto = await scene.market.call('PUT', '/users/me/auto-top-up', topUp);
  expect([auto.status, auto.body.error.code]).toEqual([402, 'API_KEY_BUDGET_EXCEEDED']);
  expect(await refusals()).toMatchObject([
    { route: expect.stringContaining('/users/me/'), budget_usd: 3 },
    { route: expect.stringContaining('/users/me/'), budget_usd: 3 },
  ]);
  await scene.later(24 * HOUR_MS);
  expect(await keyRow()).toMatchObject({ spent_today_usd: 0, spent_total_usd: 3 });
});

it('keeps the budget of a deleted key for the pods that it rented', async () => {
  key = await createKey({ max_budget_usd: 1 });
  const id = await running();
  const { session } = scene.account;
  await scene.market.call('DELETE', `/keys/${key.id}`, { headers: session });
  await scene.live(1_000_000);
  expect([await statusOf(id), await charged(id)]).toEqual(['STOPPED', 1_000_000]);
});

it('never rents more than a budget covers, also with many concurrent requests of a key', async () => {
  const { id } = await scene.market.verifiedNode({ gpus: 64, minimum: 1 });
  await scene.db
    .updateTable('executors')
    .set({ price_uusd_per_gpu_hour: 3_600_000 })
    .where('id', '=', id)
    .execute();
  key = await createKey({ daily_budget_usd: 4.5, max_budget_usd: 100 });
  const rentThere = () =>
    scene.market.rent(scene.account, id, { gpu_count: 1 }, { ...key.headers });
  const answers = await Promise.all(Array.from({ length: 50 }, rentThere));
  const countOf = (status: number) => answers.filter((answer) => answer.status === status).length;
  expect([countOf(200), countOf(402)]).toEqual([5, 45]);
  expect(await scene.holds()).toEqual(Array(5).fill(900_000));
  expect(await refusals()).toHaveLength(45);
  expect((await refusals()).every((row: { window: string }) => row.window === 'day')).toBe(true);
});

it('retains the last 100 refusals of a key', async () => {
  key = await createKey({ max_budget_usd: 0.01 });
  const other = key;
  key = await createKey({ max_budget_usd: 0.5 });
  expect((await rent({}, other.headers)).status).toBe(402);
  for (let refused = 0; refused < 105; refused += 1) {
    expect((await rent()).status).toBe(402);
    await scene.market.clock.advance(1);
  }
  const kept = await refusals();
  expect(kept).toHaveLength(100);
  const times = kept.map((row: { created_at: string }) => row.created_at);
  expect(times).toEqual(times.toSorted().toReversed());
  const rows = await scene.db.selectFrom('api_key_refusals').select('api_key_id').execute();
  expect(rows).toHaveLength(101);
  key = other;
  expect(await refusals()).toHaveLength(1);
});

it('allows a key with a budget to disable the auto top-up, but no other change of the auto top-up', async () => {
  key = await createKey({ daily_budget_usd: 1_000 });
  const put = (body: object, headers: Record<string, string> = key.headers) =>
    scene.market.call('PUT', '/users/me/auto-top-up', { headers, body: body as never });
  const settings = { threshold_usd: 5, amount_usd: 5, payment_method_id: 'sim_ok' };
  expect((await put({ ...settings, enabled: true }, scene.account.key)).status).toBe(200);
  const changes = [{ amount_usd: 10_000 }, { threshold_usd: 9_000 }, { enabled: true }, {}];
  for (const body of [...changes, { enabled: false, amount_usd: 10_000 }]) {
    const { status, body: answer } = await put(body);
    expect([body, status, answer.error?.code]).toEqual([body, 402, 'API_KEY_BUDGET_EXCEEDED']);
  }
  const off = await put({ enabled: false });
  expect([off.status, off.body]).toMatchObject([200, { enabled: false, amount_usd: 5 }]);
});
