import { afterEach, beforeEach, expect, it } from 'vitest';
import { parseIsoTime } from '#shared/runtime/clock.ts';
import { testSigner } from '../../../../test/fakes/scenes/market-fixture.ts';
import {
  createMeteringScene,
  type MeteringScene,
} from '../../../../test/fakes/scenes/metering-scene.ts';
import { createAccountPods } from '../../market/cut-off/cut-off.ts';
import { CONTACT_WAIT_MS } from '../../market/pods/pod-contact.ts';
import type { Leg } from '../ledger/double-entry.ts';
import { postGroup } from '../ledger/ledger.service.ts';
import { paidAccount } from '../ledger/wallet.service.ts';

const CREDIT_UUSD = 10_000_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

let scene: MeteringScene;
beforeEach(async () => {
  scene = await createMeteringScene();
});
afterEach(() => scene.close());

it('charges from the first `running` to the accepted deletion, and releases the remaining hold', async () => {
  scene.host.arrives = 'pulling';
  const id = await scene.rentOne();
  await scene.later(5 * MINUTE_MS);
  await scene.tick();
  expect(await scene.segments(id)).toEqual([]);
  expect((await scene.me()).held).toBe(0.9);
  scene.host.change(id, { phase: 'running' });
  await scene.later(10_000);
  scene.countFromNow();
  await scene.live(MINUTE_MS);
  await scene.tick();
  const { provider, 'platform:fee': fee, 'clearing:usage': clearing } = await scene.ledger();
  expect({ provider, fee, clearing }).toEqual({ provider: 57_000, fee: 3_000, clearing: 0 });
  expect(await scene.me()).toMatchObject({ held: 0, balance: 9.94, available: 9.94 });
  await scene.market.clock.advance(1_234);
  await scene.remove(id);
  await scene.live(2 * MINUTE_MS);
  await scene.tick();
  expect(await scene.segments(id)).toEqual([[0, 61_234, 'running']]);
  expect(await scene.meter(id)).toMatchObject({ charged_uusd: 61_234, provider_uusd: 58_172 });
  expect((await scene.me()).balance).toBe(9.938766);
});

it('charges at least a minute for a pod that has run, and accepts no smaller spend limit', async () => {
  const wish = { gpu_count: 1, max_spend_usd: 0.059999 };
  const refused = await scene.market.rent(scene.account, scene.node.id, wish);
  expect([refused.status, refused.body.validation_errors]).toEqual([
    422,
    [
      expect.objectContaining({
        field: 'body.max_spend_usd',
        message: expect.stringMatching(/0.06/),
      }),
    ],
  ]);
  const id = await scene.running({ max_spend_usd: 0.06 });
  await scene.live(30_000);
  await scene.remove(id);
  await scene.live(2 * MINUTE_MS);
  await scene.tick();
  expect(await scene.meter(id)).toMatchObject({ charged_uusd: MINUTE_MS, provider_uusd: 57_000 });
  expect(await scene.me()).toMatchObject({ held: 0, balance: 9.94 });
  const statement = (await scene.call('GET', `/pods/${id}/statement`)).body;
  expect(statement).toMatchObject({ total: 0.06, billed_seconds: 30 });
});

it('charges nothing for a failed creation and releases its hold', async () => {
  scene.host.arrives = 'failed';
  const id = await scene.rentOne();
  await scene.later(MINUTE_MS);
  await scene.tick();
  expect((await scene.pod(id)).status).toBe('CREATION_FAILED');
  expect(await scene.me()).toMatchObject({ held: 0, balance: 10, runs_out_at: null });
  const statement = (await scene.call('GET', `/pods/${id}/statement`)).body;
  expect(statement).toMatchObject({ total: 0, refunded: 0, billed_seconds: 0, lines: [] });
  expect((await scene.events(id)).at(-1)).toMatchObject({
    event_type: 'pod-create',
    reason: 'start_failed',
  });
});

it('charges a reboot requested by the renter, but not one that failed', async () => {
  const id = await scene.running();
  await scene.market.clock.advance(10_000);
  await scene.post(id, 'reboot', {});
  await scene.later(10_000);
  scene.host.up = false;
  await scene.live(3 * MINUTE_MS);
  scene.host.up = true;
  scene.host.change(id, { phase: 'running', reboots_done: 1 });
  await scene.live(MINUTE_MS);
  expect(await scene.segments(id)).toMatchObject([
    [0, 10_000, 'running'],
    [10_000, 20_000, 'user_reboot'],
    [20_000, expect.any(Number), 'contact_lost'],
    [expect.any(Number), null, 'running'],
  ]);
});

it('stops pods as of the instant at which the money runs out, even if the stop is processed late, and keeps every balance at 0 or above', async () => {
  const id = await scene.running();
  await scene.live(MINUTE_MS);
  expect((await scene.me()).runs_out_at).toContain('T');
  // The clock jumps, and the next report shows that the pod still runs.
  await scene.market.clock.advance(40 * DAY_MS);
  await scene.market.sync();
  await scene.later(CONTACT_WAIT_MS);
  await scene.tick();
  expect(await scene.segments(id)).toEqual([
    [0, CREDIT_UUSD, 'running'],
    [CREDIT_UUSD, null, 'balance_exhausted'],
  ]);
  expect(await scene.pod(id)).toMatchObject({
    status: 'STOPPED',
    phase: 'stopped',
    reason_code: 'balance_exhausted',
    ssh_connect_cmd: null,
  });
  expect(await scene.me()).toMatchObject({ balance: 0, available: 0, burn_per_hour: 0 });
  expect((await scene.ledger())['platform:absorbed']).toBeUndefined();
  expect(scene.host.pods.get(id)).toMatchObject({ stopped: true });
  await scene.later(10 * MINUTE_MS - 1);
  expect((await scene.pod(id)).status).toBe('STOPPED');
  await scene.later(1);
  await scene.later();
  expect(scene.host.pods.has(id)).toBe(false);
  expect(await scene.freeGpus()).toBe(2);
});

it('warns by event and mail before pods stop', async () => {
  const id = await scene.running();
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
  const mails = await scene.db.selectFrom('mails').select('kind').orderBy('created_at').execute();
  const kinds = mails.map(({ kind }) => kind).filter((kind) => kind.startsWith('balance-'));
  const warning = 'balance-running-out';
  expect(kinds).toEqual([warning, warning, warning, 'balance-exhausted']);
});

it('restarts pods when money arrives within the grace period', async () => {
  const id = await scene.running();
  await scene.live(MINUTE_MS);
  await scene.later(CREDIT_UUSD);
  await scene.later(CONTACT_WAIT_MS);
  expect((await scene.pod(id)).status).toBe('STOPPED');
  const { clock, ports } = scene.market;
  await clock.advance(5 * MINUTE_MS);
  await scene.db.transaction().execute(async (tx) => {
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
    const accountPods = createAccountPods({ clock, random: ports.random });
    expect(await accountPods.awaitMoney(tx, account)).toBe(true);
    await accountPods.restart(tx, account);
    expect(await accountPods.awaitMoney(tx, account)).toBe(false);
  });
  await scene.later(10_000);
  await scene.later(10_000);
  expect(scene.host.pods.get(id)).toMatchObject({ stopped: false });
  expect((await scene.pod(id)).status).toBe('RUNNING');
  await scene.later(10 * MINUTE_MS);
  expect((await scene.pod(id)).status).toBe('RUNNING');
  const pieces = await scene.segments(id);
  expect(pieces.map(([, , cause]) => cause)).toEqual([
    'running',
    'balance_exhausted',
    'restarting',
    'running',
  ]);
});

it('stops a pod at its spend limit, to the millisecond', async () => {
  const id = await scene.running({ max_spend_usd: 0.1 });
  await scene.live(100_000 - 1_000);
  expect((await scene.pod(id)).status).toBe('RUNNING');
  await scene.later(5_000);
  await scene.tick();
  expect(await scene.pod(id)).toMatchObject({
    status: 'STOPPED',
    reason_code: 'max_spend_reached',
  });
  expect(await scene.meter(id)).toMatchObject({ charged_uusd: 100_000, state: 'stopped' });
});

it('charges up to the scheduled removal, even if the removal is processed later', async () => {
  const id = await scene.running({ termination_hours: 1 });
  const rentedMs = (
    await scene.db.selectFrom('pods').select('created_at').executeTakeFirstOrThrow()
  ).created_at;
  await scene.live(MINUTE_MS);
  await scene.market.clock.advance(2 * HOUR_MS);
  await scene.market.sync();
  // The node is contacted before the removal.
  expect((await scene.pod(id)).status).toBe('RUNNING');
  await scene.later(CONTACT_WAIT_MS);
  await scene.tick();
  expect((await scene.meter(id)).charged_uusd).toBe(HOUR_MS - (scene.startMs() - rentedMs));
});

it('charges nothing when the clock is set back (I18)', async () => {
  const id = await scene.running();
  await scene.live(10 * MINUTE_MS);
  await scene.tick();
  const before = (await scene.meter(id)).charged_uusd;
  await scene.market.clock.advance(-5 * MINUTE_MS);
  await scene.tick();
  await scene.remove(id);
  expect(await scene.meter(id)).toMatchObject({ charged_uusd: before });
  expect(await scene.segments(id)).toEqual([[0, 10 * MINUTE_MS, 'running']]);
});

it('lists the part of the minimum charge that exceeds the use', async () => {
  const id = await scene.running();
  await scene.later(10_000);
  await scene.remove(id);
  const { total, lines } = (await scene.call('GET', `/pods/${id}/statement`)).body;
  expect(total).toBe(0.06);
  expect(lines).toMatchObject([
    { state: 'running', amount: 0.01 },
    { state: 'minimum_charge', cause: 'minimum_charge', amount: 0.05 },
  ]);
});

it('shows the same amount in rows, statement, provider billing and ledger', async () => {
  const id = await scene.running();
  await scene.live(MINUTE_MS);
  scene.host.up = false;
  await scene.live(2 * MINUTE_MS);
  scene.host.up = true;
  await scene.live(MINUTE_MS);
  await scene.tick();
  const { charged_uusd: charged, provider_uusd: net } = await scene.metered(id);
  const usd = charged / 1_000_000;
  expect(await scene.me()).toMatchObject({ burn_per_hour: 3.6, balance: 10 - usd });
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
    pod_id: id,
    executor_id: scene.node.id,
    gpu_count: 1,
    status: 'pending',
    seconds: Math.floor(charged / 1_000),
    gross_usd: usd,
    net_usd: net / 1_000_000,
  });
  const { hotkey } = scene.market.provider;
  const own = await scene.market.portal('GET', `/billing/${hotkey}`, { token });
  expect(own.body.data).toEqual(billing.data);
  const all = await scene.market.portal('GET', '/billing?scope=all', { token });
  expect(all.body.data).toEqual(billing.data);
  const foreign = await scene.market.logIn(testSigner(9));
  const nothing = await scene.market.portal('GET', '/billing', { token: foreign });
  expect(nothing.body).toMatchObject({ data: [], total: 0 });
  for (const path of [`/billing/${hotkey}`, '/billing?scope=all']) {
    const { status, body } = await scene.market.portal('GET', path, { token: foreign });
    const hidden = {
      pod_id: null,
      gross_usd: null,
      fee_usd: null,
      net_usd: null,
      unposted: null,
    };
    const row = { ...billing.data[0], ...hidden, id: expect.stringMatching(/^[0-9a-f]{32}$/) };
    expect([path, status, body.data]).toEqual([path, 200, [row]]);
    expect(JSON.stringify(body)).not.toContain(id);
  }
  const stranger = await scene.market.signUp();
  const headers = stranger.key;
  expect((await scene.market.call('GET', `/pods/${id}/statement`, { headers })).status).toBe(404);
  await scene.remove(id);
  await scene.later();
  expect((await scene.call('GET', `/pods/${id}/statement`)).body.total).toBeGreaterThan(usd - 1e-9);
});

it('restarts a pod only if its limit is raised within the grace period', async () => {
  const id = await scene.running({ max_spend_usd: 0.1 });
  await scene.live(110_000);
  expect((await scene.pod(id)).status).toBe('STOPPED');
  const patch = (usd: number) => scene.call('PATCH', `/pods/${id}`, { max_spend_usd: usd });
  expect((await patch(0.1)).body.status).toBe('STOPPED');
  expect((await patch(0.2)).body.status).toBe('PENDING');
  await scene.live(30_000);
  expect((await scene.pod(id)).status).toBe('RUNNING');
  await scene.live(110_000);
  expect(await scene.pod(id)).toMatchObject({ status: 'STOPPED', spent_usd: 0.2 });
});

it('keeps a repeatedly restarted pod for a total of ten stopped minutes', async () => {
  const id = await scene.running({ max_spend_usd: 0.1 });
  await scene.live(110_000);
  await scene.later(7 * MINUTE_MS);
  for (const usd of [0.100001, 0.100002]) {
    await scene.call('PATCH', `/pods/${id}`, { max_spend_usd: usd });
    await scene.live(30_000);
    expect((await scene.pod(id)).status).toBe('STOPPED');
  }
  await scene.later(MINUTE_MS);
  expect((await scene.pod(id)).status).toBe('STOPPED');
  await scene.later(2 * MINUTE_MS);
  await scene.later();
  expect(scene.host.pods.has(id)).toBe(false);
});

it('keeps a pod for ten minutes after a stop that was recorded late, and for the remaining time after the next stop', async () => {
  const id = await scene.running({ max_spend_usd: 0.1 });
  // The central API was down for half an hour.
  await scene.later(30 * MINUTE_MS);
  await scene.later(CONTACT_WAIT_MS);
  expect((await scene.pod(id)).status).toBe('STOPPED');
  const keptMs = async () => {
    const due = scene.db.selectFrom('due_work').select('due_at').where('kind', '=', 'grace-end');
    return (await due.executeTakeFirstOrThrow()).due_at - scene.market.clock.now();
  };
  expect(await keptMs()).toBe(10 * MINUTE_MS);
  await scene.later(4 * MINUTE_MS);
  await scene.call('PATCH', `/pods/${id}`, { max_spend_usd: 0.1 + 0.12 });
  await scene.live(10_000);
  await scene.live(120_000);
  expect(await scene.pod(id)).toMatchObject({ status: 'STOPPED', spent_usd: 0.22 });
  // Ten minutes minus four, minus the first unrecorded minute, plus the two minutes in which the pod ran.
  expect(await keptMs()).toBe((10 - 4 - 1 + 2) * MINUTE_MS);
});

it('moves the time at which money runs out earlier for the hold of another rental, and later when a pod ends', async () => {
  const id = await scene.running();
  const before = (await scene.me()).runs_out_at;
  const second = await scene.rentOne();
  const held = (await scene.me()).runs_out_at;
  const atMs = (time: string) => parseIsoTime(time) ?? 0;
  expect(atMs(before) - atMs(held)).toBe(900_000);
  const due = () =>
    scene.db.selectFrom('due_work').select('due_at').where('kind', '=', 'cut-off').execute();
  expect(await due()).toEqual([{ due_at: atMs(held) }]);
  await scene.remove(second);
  expect((await scene.me()).runs_out_at).toBe(before);
  await scene.remove(id);
  expect([(await scene.me()).runs_out_at, await due()]).toEqual([null, []]);
});
