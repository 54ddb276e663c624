import { afterEach, beforeEach, expect, it } from 'vitest';
import { CheckResult } from '#shared/central-api/validator-routes.ts';
import { parseIsoTime } from '#shared/clock.ts';
import { testSigner } from '../../../test/fakes/market-fixture.ts';
import { createPodScene, type PodScene } from '../../../test/fakes/pod-scene.ts';
import { postGroup } from '../ledger/ledger.service.ts';
import type { Leg } from '../ledger/ledger-account.ts';
import { paidAccount } from '../ledger/wallet.service.ts';
import { CONTACT_WAIT_MS } from '../pods/pod-contact.ts';
import { fundsAdded } from './cut-off.ts';

/** A micro-dollar per millisecond. */
const PRICE_UUSD = 3_600_000;
const CREDIT_UUSD = 10_000_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

const FAILED_CHECK = {
  ...{ check_id: 'reachable', passed: false, measured: 'no answer', required: 'an answer' },
  ...{ message: 'The agent did not answer', remediation: 'Start it' },
};

let scene: PodScene;
let startMs: number;
beforeEach(async () => {
  scene = await createPodScene();
  await scene.market.ports.db
    .updateTable('executors')
    .set({ price_uusd_per_gpu_hour: PRICE_UUSD })
    .execute();
});
afterEach(() => scene.close());

const db = () => scene.market.ports.db;

/** A pod that runs from `startMs` on. */
async function running(body: Record<string, unknown> = {}): Promise<string> {
  const id = await scene.running(body);
  startMs = scene.market.clock.now();
  return id;
}

const tick = () => scene.market.central.meterPods();

const me = async () => (await scene.call('GET', '/users/me')).body;

/** Everything that every account of the ledger has. */
async function ledger(): Promise<Record<string, number>> {
  const rows = await db().selectFrom('ledger_accounts').selectAll().execute();
  return Object.fromEntries(
    rows.map(({ id, credits_posted, debits_posted }) => [
      id.split(':')[0] === 'platform' || id.split(':')[0] === 'clearing' ? id : id.split(':')[0],
      credits_posted - debits_posted,
    ]),
  );
}

async function meter(id: string) {
  return db()
    .selectFrom('usage_meters')
    .selectAll()
    .where('pod_id', '=', id)
    .executeTakeFirstOrThrow();
}

const segments = async (id: string) =>
  (
    await db()
      .selectFrom('usage_segments')
      .selectAll()
      .where('pod_id', '=', id)
      .orderBy('seq')
      .execute()
  ).map(({ from_ms, to_ms, cause }) => [
    from_ms - startMs,
    to_ms === null ? null : to_ms - startMs,
    cause,
  ]);

/** What its pod does is heard of every ten seconds. */
async function live(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 10_000) await scene.later(Math.min(left, 10_000));
}

it('charges from the first running to the accepted deletion, and frees the rest of what was held', async () => {
  scene.host.arrives = 'pulling';
  const id = await scene.rentOne();
  await scene.later(5 * MINUTE_MS);
  await tick();
  expect(await segments(id)).toEqual([]);
  expect((await me()).held).toBe(0.9);
  scene.host.change(id, { phase: 'running' });
  await scene.later(10_000);
  startMs = scene.market.clock.now();
  await live(MINUTE_MS);
  await tick();
  const { provider, 'platform:fee': fee, 'clearing:usage': clearing } = await ledger();
  expect({ provider, fee, clearing }).toEqual({ provider: 57_000, fee: 3_000, clearing: 0 });
  expect(await me()).toMatchObject({ held: 0, balance: 9.94, available: 9.94 });
  await scene.market.clock.advance(1_234);
  await scene.remove(id);
  await live(2 * MINUTE_MS);
  await tick();
  expect(await segments(id)).toEqual([[0, 61_234, 'running']]);
  expect(await meter(id)).toMatchObject({ charged_uusd: 61_234, provider_uusd: 58_172 });
  expect((await me()).balance).toBe(9.938766);
});

it('charges nothing for a creation that failed, and frees what was held', async () => {
  scene.host.arrives = 'failed';
  const id = await scene.rentOne();
  await scene.later(MINUTE_MS);
  await tick();
  expect((await scene.pod(id)).status).toBe('CREATION_FAILED');
  expect(await me()).toMatchObject({ held: 0, balance: 10, runs_out_at: null });
});

it('charges nothing from the last contact on, nor twice, when an agent is silent and comes back', async () => {
  const id = await running();
  await live(MINUTE_MS);
  scene.host.up = false;
  await live(5 * MINUTE_MS);
  await tick();
  expect((await meter(id)).charged_uusd).toBe(MINUTE_MS);
  scene.host.up = true;
  await live(MINUTE_MS);
  const [first, lost, back] = await segments(id);
  expect(first).toEqual([0, MINUTE_MS, 'running']);
  expect(lost?.[2]).toBe('contact_lost');
  expect(back?.slice(1)).toEqual([null, 'running']);
});

it('meters a reboot that its renter asked for, and none that nobody can follow', async () => {
  const id = await running();
  await scene.market.clock.advance(10_000);
  await scene.post(id, 'reboot', {});
  await scene.later(10_000);
  scene.host.up = false;
  await live(3 * MINUTE_MS);
  scene.host.up = true;
  scene.host.change(id, { phase: 'running', reboots_done: 1 });
  await live(MINUTE_MS);
  expect(await segments(id)).toMatchObject([
    [0, 10_000, 'running'],
    [10_000, 20_000, 'user_reboot'],
    [20_000, expect.any(Number), 'contact_lost'],
    [expect.any(Number), null, 'running'],
  ]);
});

it('stops pods at the instant at which the money is used up, however late it wakes, and nobody is below nothing', async () => {
  const id = await running();
  await live(MINUTE_MS);
  expect((await me()).runs_out_at).toContain('T');
  // The clock jumps, and the first that is heard of the pod is that it still runs.
  await scene.market.clock.advance(40 * DAY_MS);
  await scene.market.sync();
  await scene.later(CONTACT_WAIT_MS);
  await tick();
  expect(await segments(id)).toEqual([
    [0, CREDIT_UUSD, 'running'],
    [CREDIT_UUSD, null, 'balance_exhausted'],
  ]);
  expect(await scene.pod(id)).toMatchObject({
    ...{ status: 'STOPPED', phase: 'stopped', reason_code: 'balance_exhausted' },
    ssh_connect_cmd: null,
  });
  expect(await me()).toMatchObject({ balance: 0, available: 0, burn_per_hour: 0 });
  expect((await ledger())['platform:absorbed']).toBeUndefined();
  expect(scene.host.pods.get(id)).toMatchObject({ stopped: true });
  await scene.later(10 * MINUTE_MS - 1);
  expect((await scene.pod(id)).status).toBe('STOPPED');
  await scene.later(1);
  await scene.later();
  expect(scene.host.pods.has(id)).toBe(false);
  expect(await scene.freeGpus()).toBe(2);
});

it('warns before it stops them, by event and mail', async () => {
  const id = await running();
  for (const minutes of [107, 45, 10]) await scene.later(minutes * MINUTE_MS);
  await scene.later(5 * MINUTE_MS);
  await scene.later(MINUTE_MS);
  const events = (await scene.call('GET', '/users/me/events')).body;
  const told = events
    .filter((event: { event_type: string }) => event.event_type === 'billing')
    .map(({ event }: { event: { detail: string; minutes_left?: number } }) => [
      event.detail,
      event.minutes_left,
    ]);
  expect(told.slice(0, 4)).toEqual([
    ['balance_exhausted', undefined],
    ['balance_warning', 5],
    ['balance_warning', 15],
    ['balance_warning', 60],
  ]);
  expect((await scene.pod(id)).status).toBe('STOPPED');
  const mails = await db().selectFrom('mails').select('kind').orderBy('created_at').execute();
  const kinds = mails.map(({ kind }) => kind).filter((kind) => kind.startsWith('balance-'));
  const warning = 'balance-running-out';
  expect(kinds).toEqual([warning, warning, warning, 'balance-exhausted']);
});

it('starts them again when money comes within the grace', async () => {
  const id = await running();
  await live(MINUTE_MS);
  await scene.later(CREDIT_UUSD);
  await scene.later(CONTACT_WAIT_MS);
  expect((await scene.pod(id)).status).toBe('STOPPED');
  const { clock, ports } = scene.market;
  await clock.advance(5 * MINUTE_MS);
  await db()
    .transaction()
    .execute(async (tx) => {
      const account = scene.account.id;
      const leg = {
        debit: 'external:topup',
        credit: paidAccount(account),
        amountUusd: CREDIT_UUSD,
      };
      const cause = {
        type: 'top-up',
        id: 'one',
        actor: 'system',
        requestId: null,
        atMs: clock.now(),
      };
      await postGroup(tx, [leg as Leg], cause);
      expect(await fundsAdded(tx, { clock, random: ports.random }, account)).toHaveLength(1);
    });
  await scene.later(10_000);
  await scene.later(10_000);
  expect(scene.host.pods.get(id)).toMatchObject({ stopped: false });
  expect((await scene.pod(id)).status).toBe('RUNNING');
  await scene.later(10 * MINUTE_MS);
  expect((await scene.pod(id)).status).toBe('RUNNING');
  const pieces = await segments(id);
  expect(pieces.map(([, , cause]) => cause)).toEqual([
    ...['running', 'balance_exhausted', 'restarting', 'running'],
  ]);
});

it('stops a pod that has cost as much as its renter lets it, to the millisecond', async () => {
  const id = await running({ max_spend_usd: 0.1 });
  await live(100_000 - 1_000);
  expect((await scene.pod(id)).status).toBe('RUNNING');
  await scene.later(5_000);
  await tick();
  expect(await scene.pod(id)).toMatchObject({
    status: 'STOPPED',
    reason_code: 'max_spend_reached',
  });
  expect(await meter(id)).toMatchObject({ charged_uusd: 100_000, state: 'stopped' });
});

it('charges to the scheduled removal and not to when it was noticed', async () => {
  const id = await running({ termination_hours: 1 });
  const rentedMs = (await db().selectFrom('pods').select('created_at').executeTakeFirstOrThrow())
    .created_at;
  await live(MINUTE_MS);
  await scene.market.clock.advance(2 * HOUR_MS);
  await scene.market.sync();
  // The node is asked first whether the pod ran on.
  expect((await scene.pod(id)).status).toBe('RUNNING');
  await scene.later(CONTACT_WAIT_MS);
  await tick();
  expect((await meter(id)).charged_uusd).toBe(HOUR_MS - (startMs - rentedMs));
});

it('charges nothing beyond the last contact for what ended while nobody could tell whether it ran', async () => {
  const ids = [await running({ termination_hours: 1 }), await scene.running()];
  await live(MINUTE_MS);
  const heardMs = scene.market.clock.now();
  scene.host.up = false;
  // Nobody asked either: the central API was down, too.
  await scene.market.clock.advance(2 * HOUR_MS);
  for (const id of ids) await scene.remove(id);
  await scene.later(CONTACT_WAIT_MS);
  for (const id of ids) {
    const { settled_to_ms: settledMs, ended_at: endedMs } = await meter(id);
    expect([settledMs, endedMs]).toEqual([heardMs, heardMs]);
  }
});

it('waits once with a removal for a node that nobody asked, and charges what was confirmed when it stays silent', async () => {
  const id = await running({ termination_hours: 1 });
  await live(MINUTE_MS);
  scene.host.up = false;
  await scene.market.clock.advance(2 * HOUR_MS);
  await scene.market.sync();
  await scene.later(CONTACT_WAIT_MS);
  expect((await db().selectFrom('pods').select('state').executeTakeFirstOrThrow()).state).toBe(
    'deleting',
  );
  expect((await meter(id)).charged_uusd).toBe(MINUTE_MS);
});

it('gives back what was charged since the pod was last well when its provider broke it', async () => {
  const id = await running();
  await live(MINUTE_MS);
  // The agent answers and the pod is not well; then nothing answers.
  scene.host.change(id, { phase: 'backoff' });
  await live(MINUTE_MS);
  await tick();
  expect((await meter(id)).charged_uusd).toBe(2 * MINUTE_MS);
  scene.host.up = false;
  await scene.later(MINUTE_MS);
  await scene.later(2 * HOUR_MS - MINUTE_MS - 1);
  expect((await scene.pod(id)).status).toBe('RUNNING');
  await scene.later(31_000);
  expect(await scene.pod(id)).toMatchObject({ status: 'BROKEN', reason_code: 'provider_fault' });
  const { refunded_uusd } = await meter(id);
  expect(refunded_uusd).toBe(MINUTE_MS);
  const { provider, 'platform:fee': fee, 'clearing:refund': clearing } = await ledger();
  expect({ provider, fee, clearing }).toEqual({ provider: 57_000, fee: 3_000, clearing: 0 });
  expect((await me()).balance).toBe(9.94);
});

it('breaks a pod at once when a validator confirms that its node is lost, and only by a verdict of the silence', async () => {
  const id = await running();
  await live(MINUTE_MS);
  scene.host.change(id, { phase: 'backoff' });
  await live(MINUTE_MS);
  await tick();
  const verdict = (reason_code: string) =>
    scene.market.report(scene.node, {
      verdict: 'failed',
      inventory: null,
      checks: [CheckResult.parse({ ...FAILED_CHECK, reason_code })],
    });
  scene.host.up = false;
  await verdict('AGENT_UNREACHABLE');
  await scene.later(2 * MINUTE_MS);
  await scene.later(MINUTE_MS);
  expect(await scene.pod(id)).toMatchObject({ status: 'RUNNING', phase: 'unreachable' });
  await verdict('TLS_PIN_MISMATCH');
  await scene.later(0);
  expect((await scene.pod(id)).status).toBe('RUNNING');
  await verdict('AGENT_UNREACHABLE');
  // Not after the pause of an agent that does not answer.
  await scene.later(0);
  expect(await scene.pod(id)).toMatchObject({ status: 'BROKEN', reason_code: 'provider_fault' });
  expect((await meter(id)).refunded_uusd).toBe(MINUTE_MS);
});

it('takes nothing for a clock that goes back (I18)', async () => {
  const id = await running();
  await live(10 * MINUTE_MS);
  await tick();
  const before = (await meter(id)).charged_uusd;
  await scene.market.clock.advance(-5 * MINUTE_MS);
  await tick();
  await scene.remove(id);
  expect(await meter(id)).toMatchObject({ charged_uusd: before });
  expect(await segments(id)).toEqual([[0, 10 * MINUTE_MS, 'running']]);
});

it('shows one figure everywhere: rows, statement, the day of the provider, the ledger', async () => {
  const id = await running();
  await live(MINUTE_MS);
  scene.host.up = false;
  await live(2 * MINUTE_MS);
  scene.host.up = true;
  await live(MINUTE_MS);
  await tick();
  const { charged_uusd: charged, provider_uusd: net } = await meter(id);
  const usd = charged / 1_000_000;
  expect(await me()).toMatchObject({ burn_per_hour: 3.6, balance: 10 - usd });
  expect((await scene.pod(id)).spent_usd).toBe(usd);
  expect((await scene.call('GET', '/pods')).body[0].spent_usd).toBe(usd);
  const statement = (await scene.call('GET', `/pods/${id}/statement`)).body;
  expect(statement).toMatchObject({ total: usd, refunded: 0, currency: 'USD' });
  expect(statement.billed_seconds).toBe(Math.floor(charged / 1_000));
  const amounts = statement.lines.map(({ amount }: { amount: number }) => amount);
  expect(amounts[1]).toBe(0);
  expect(amounts.reduce((sum: number, amount: number) => sum + amount, 0)).toBeCloseTo(usd, 6);
  const token = await scene.market.logIn();
  const billing = (await scene.market.portal('GET', '/billing', { token })).body;
  expect(billing).toMatchObject({ total: 1, page: 1, limit: 20, pagination: { total_pages: 1 } });
  expect(billing.data[0]).toMatchObject({
    ...{ pod_id: id, executor_id: scene.node.id, gpu_count: 1, status: 'pending' },
    ...{ seconds: Math.floor(charged / 1_000), gross_usd: usd, net_usd: net / 1_000_000 },
  });
  const { hotkey } = scene.market.provider;
  const own = await scene.market.portal('GET', `/billing/${hotkey}`, { token });
  expect(own.body.data).toEqual(billing.data);
  const foreign = await scene.market.logIn(testSigner(9));
  for (const path of [`/billing/${hotkey}`, '/billing?scope=all']) {
    expect((await scene.market.portal('GET', path, { token: foreign })).status).toBe(403);
  }
  const stranger = await scene.market.signUp();
  const headers = stranger.key;
  expect((await scene.market.call('GET', `/pods/${id}/statement`, { headers })).status).toBe(404);
  await scene.remove(id);
  await scene.later();
  expect((await scene.call('GET', `/pods/${id}/statement`)).body.total).toBeGreaterThan(usd - 1e-9);
});

it('starts a pod again whose renter raises its limit in the grace, and only then', async () => {
  const id = await running({ max_spend_usd: 0.1 });
  await live(110_000);
  expect((await scene.pod(id)).status).toBe('STOPPED');
  const patch = (usd: number) => scene.call('PATCH', `/pods/${id}`, { max_spend_usd: usd });
  expect((await patch(0.1)).body.status).toBe('STOPPED');
  expect((await patch(0.2)).body.status).toBe('PENDING');
  await live(30_000);
  expect((await scene.pod(id)).status).toBe('RUNNING');
  await live(110_000);
  expect(await scene.pod(id)).toMatchObject({ status: 'STOPPED', spent_usd: 0.2 });
});

it('runs out earlier when another rental holds money, and later when a pod ends', async () => {
  const id = await running();
  const before = (await me()).runs_out_at;
  const second = await scene.rentOne();
  const held = (await me()).runs_out_at;
  const atMs = (time: string) => parseIsoTime(time) ?? 0;
  expect(atMs(before) - atMs(held)).toBe(900_000);
  const due = () =>
    db().selectFrom('due_work').select('due_at').where('kind', '=', 'cut-off').execute();
  expect(await due()).toEqual([{ due_at: atMs(held) }]);
  await scene.remove(second);
  expect((await me()).runs_out_at).toBe(before);
  await scene.remove(id);
  expect([(await me()).runs_out_at, await due()]).toEqual([null, []]);
});
