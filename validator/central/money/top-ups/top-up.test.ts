import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  createTestCentral,
  type TestAccount,
  type TestCentral,
} from '../../../../test/fakes/scenes/central-fixture.ts';
import { createMeteringScene } from '../../../../test/fakes/scenes/metering-scene.ts';
import { setAvailable, testCause } from '../../../../test/fakes/scenes/wallet.ts';
import { createAccountPods } from '../../market/cut-off/cut-off.ts';
import type { ChargeAnswer, PaymentEvent, Payments } from '../../platform/ports.ts';
import { placeHold } from '../ledger/hold.service.ts';
import { walletOf } from '../ledger/wallet.service.ts';
import { createAutoTopUps } from './auto-top-up.service.ts';
import { createSimulatedPayments } from './simulated-payments.ts';

const USD = 1_000_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const FIRST = {
  enabled: true,
  threshold_usd: 10,
  amount_usd: 25,
  payment_method_id: 'sim_ok',
};

let central: TestCentral;
let account: TestAccount;
beforeEach(async () => {
  central = await createTestCentral({ payments: 'simulated' });
  account = await central.signUp();
});
afterEach(() => central.close());

const get = () => central.call('GET', '/users/me/auto-top-up', { headers: account.key });
const put = (body: object) =>
  central.call('PUT', '/users/me/auto-top-up', { headers: account.key, body });
const status = async () => (await get()).body.status;
const charge = () => central.central.chargeTopUps();
const paid = async () => (await walletOf(central.ports.db, account.id)).paid / USD;
const topUps = () => central.ports.db.selectFrom('topups').selectAll().execute();
const details = async () =>
  (await central.call('GET', '/users/me/events', { headers: account.key })).body
    .filter(({ event_type: type }: { event_type: string }) => type === 'billing')
    .map(({ detail }: { detail: string }) => detail);
const mails = () => central.ports.db.selectFrom('mails').select('kind').execute();

/** Runs the check that follows a spend that leaves `leftUsd`, while a pod runs. */
async function spend(leftUsd: number, payments?: Payments): Promise<void> {
  const { db, clock, random } = central.ports;
  const processor = payments ?? createSimulatedPayments({ db, clock, random });
  const auto = createAutoTopUps({
    db,
    clock,
    random,
    payments: processor,
    pods: createAccountPods({ clock, random }),
  });
  const funds = { available: leftUsd * USD, burnPerHour: USD, runsOutAtMs: null };
  await db.transaction().execute((tx) => auto.afterSpend(tx, new Map([[account.id, funds]])));
}

/** Replaces the central API by one with this processor, and creates a new account. */
async function restartWith(payments: Payments): Promise<void> {
  await central.close();
  central = await createTestCentral({ payments });
  account = await central.signUp();
}

it('returns null until it is configured, and requires every required field in the first update', async () => {
  expect([(await get()).status, (await get()).body]).toEqual([200, null]);
  const { threshold_usd: _, ...without } = FIRST;
  expect([(await put(without)).status, (await put({})).status]).toEqual([422, 422]);
  expect((await put({ ...FIRST, payment_method_id: null })).status).toBe(400);
  expect((await put({ ...FIRST, payment_method_id: 'pm_unknown' })).status).toBe(400);
  expect((await put({ ...FIRST, monthly_limit_usd: 24 })).status).toBe(400);
  for (const wrong of [
    { amount_usd: 4.99 },
    { amount_usd: 10_000.01 },
    { amount_usd: 5.001 },
    { threshold_usd: 0.99 },
    { payment_method_id: '../x' },
  ]) {
    expect([wrong, (await put({ ...FIRST, ...wrong })).status]).toEqual([wrong, 422]);
  }
  expect((await get()).body).toBeNull();
  const set = await put(FIRST);
  expect([set.status, set.body]).toMatchObject([
    200,
    {
      ...FIRST,
      user_id: account.id,
      monthly_limit_usd: null,
      status: 'idle',
      month_charged_usd: 0,
      last_attempt_at: null,
      last_error: null,
    },
  ]);
  const other = await put({ amount_usd: 30, monthly_limit_usd: 100 });
  expect(other.body).toMatchObject({ ...FIRST, amount_usd: 30, monthly_limit_usd: 100 });
  expect((await put({ monthly_limit_usd: null })).body.monthly_limit_usd).toBeNull();
  for (const edge of [
    { amount_usd: 5 },
    { amount_usd: 10_000 },
    { threshold_usd: 1 },
    { amount_usd: 25, monthly_limit_usd: 25 },
  ]) {
    expect((await put(edge)).body).toMatchObject(edge);
  }
  expect((await put({ enabled: false, payment_method_id: null })).body).toMatchObject({
    enabled: false,
    payment_method_id: null,
    id: set.body.id,
  });
});

it('charges once at the threshold, credits the amount and can charge again', async () => {
  await put(FIRST);
  await spend(10.000001);
  expect(await topUps()).toEqual([]);
  await Promise.all([spend(10), spend(9), spend(8)]);
  expect([await status(), (await topUps()).length]).toEqual(['charging', 1]);
  await Promise.all([charge(), charge()]);
  expect(await paid()).toBe(25);
  expect((await get()).body).toMatchObject({ status: 'idle', month_charged_usd: 25 });
  expect(await details()).toEqual(['topped up by $25.00']);
  await spend(9);
  await put({ enabled: true });
  expect(await topUps()).toHaveLength(1);
  await central.clock.advance(10 * MINUTE_MS);
  await spend(9);
  await charge();
  expect(await paid()).toBe(50);
});

it('does not charge beyond the limit of a calendar month', async () => {
  await put({ ...FIRST, monthly_limit_usd: 50 });
  for (const _ of [1, 2, 3]) {
    await spend(1);
    await charge();
    await central.clock.advance(10 * MINUTE_MS);
  }
  expect([await paid(), (await get()).body.month_charged_usd]).toEqual([50, 50]);
  await central.clock.advance(31 * DAY_MS);
  await spend(1);
  await charge();
  expect([await paid(), (await get()).body.month_charged_usd]).toEqual([75, 25]);
});

it('checks daily and charges nothing while nothing runs', async () => {
  await put(FIRST);
  await setAvailable(central.ports.db, 3 * USD);
  await central.clock.advance(DAY_MS);
  await central.central.syncPods();
  expect(await topUps()).toEqual([]);
  const due = await central.ports.db.selectFrom('due_work').selectAll().execute();
  expect(due).toMatchObject([
    { kind: 'top-up', subject: account.id, due_at: central.clock.now() + DAY_MS },
  ]);
  await put({ enabled: false });
  expect(await central.ports.db.selectFrom('due_work').selectAll().execute()).toEqual([]);
});

it('retries a declined method with growing pauses and suspends after the third decline', async () => {
  await put({ ...FIRST, payment_method_id: 'sim_declined' });
  for (const pauseMs of [5 * MINUTE_MS, HOUR_MS]) {
    await spend(1);
    await charge();
    expect((await get()).body).toMatchObject({ status: 'failed', month_charged_usd: 0 });
    await central.clock.advance(pauseMs - 1);
    await spend(1);
    expect(await status()).toBe('failed');
    await central.clock.advance(1);
  }
  expect(await mails()).toEqual([]);
  await spend(1);
  await charge();
  expect((await get()).body).toMatchObject({
    status: 'suspended',
    last_error: 'the simulated card was declined',
  });
  await central.clock.advance(DAY_MS);
  await spend(1);
  expect([await topUps(), await paid()]).toMatchObject([{ length: 3 }, 0]);
  expect(await mails()).toEqual([{ kind: 'top-up-suspended' }]);
  expect((await details())[0]).toBe('auto top-up suspended: 3 charges in a row were declined');
  expect((await put({ payment_method_id: 'sim_ok' })).body.status).toBe('idle');
  await spend(1);
  await charge();
  expect(await paid()).toBe(25);
});

it('charges for stopped pods before their grace period ends, although nothing is spent', async () => {
  const scene = await createMeteringScene({ payments: 'simulated' });
  try {
    const { chargeTopUps } = scene.market.central;
    const id = await scene.running();
    await scene.later(3 * HOUR_MS);
    await scene.later(MINUTE_MS);
    expect((await scene.pod(id)).status).toBe('STOPPED');
    const method = { payment_method_id: 'sim_declined' };
    await scene.call('PUT', '/users/me/auto-top-up', { ...FIRST, ...method });
    await chargeTopUps();
    // The bank accepts the next charge.
    await scene.db.updateTable('auto_topups').set({ payment_method_id: 'sim_ok' }).execute();
    await scene.later(5 * MINUTE_MS);
    await chargeTopUps();
    expect((await scene.me()).balance).toBe(25);
    await scene.live(20_000);
    expect((await scene.pod(id)).status).toBe('RUNNING');
  } finally {
    await scene.close();
  }
});

it('waits for a pending charge across a restart of the central API', async () => {
  await put({ ...FIRST, payment_method_id: 'sim_late' });
  await spend(1);
  await charge();
  expect([await status(), await paid()]).toEqual(['charging', 0]);
  expect(await topUps()).toMatchObject([{ state: 'pending', attempts: 1 }]);
  const { db, clock } = central.ports;
  await central.central.close();
  await central.clock.advance(MINUTE_MS);
  const again = await createTestCentral({ db, clock: central.clock, payments: 'simulated' });
  await again.central.chargeTopUps();
  expect((await walletOf(db, account.id)).paid).toBe(25 * USD);
  expect(clock.now()).toBe(again.clock.now());
  await again.central.close();
});

it('debits a disputed charge from credit that is not held, and the remainder from the platform', async () => {
  await put({ ...FIRST, payment_method_id: 'sim_disputed' });
  await setAvailable(central.ports.db, 0);
  await spend(1);
  await charge();
  const { db } = central.ports;
  await db
    .transaction()
    .execute((tx) => placeHold(tx, account.id, 20 * USD, testCause({ type: 'hold' })));
  await central.clock.advance(2 * MINUTE_MS);
  await charge();
  await charge();
  const wallet = await walletOf(db, account.id);
  expect([wallet.paid, wallet.available]).toEqual([20 * USD, 0]);
  const absorbed = await db
    .selectFrom('ledger_accounts')
    .select('debits_posted')
    .where('id', '=', 'platform:absorbed')
    .executeTakeFirstOrThrow();
  expect(absorbed.debits_posted).toBe(20 * USD);
  expect((await get()).body).toMatchObject({
    status: 'suspended',
    last_error: 'a charge was disputed',
  });
  expect(await topUps()).toMatchObject([{ state: 'succeeded', disputed_uusd: 25 * USD }]);
  const again = await put({ enabled: true });
  expect([again.status, again.body.error.message]).toEqual([
    400,
    'A charge of this payment method was disputed',
  ]);
  expect((await put({ threshold_usd: 9 })).body.status).toBe('suspended');
  expect(await mails()).toEqual([{ kind: 'top-up-suspended' }]);
  expect((await put({ enabled: true, payment_method_id: 'sim_ok' })).body.status).toBe('idle');
});

it('rejects auto top-ups without a payment processor', async () => {
  await central.close();
  central = await createTestCentral();
  account = await central.signUp();
  expect((await put(FIRST)).status).toBe(400);
  expect((await get()).body).toBeNull();
});

it('deletes an auto top-up with its account and retains its charges', async () => {
  await put(FIRST);
  await spend(1);
  await charge();
  await central.call('DELETE', '/users/me', { headers: account.session });
  const { db } = central.ports;
  expect(await db.selectFrom('auto_topups').selectAll().execute()).toEqual([]);
  expect(await topUps()).toMatchObject([{ state: 'succeeded' }]);
  const rows = await db.selectFrom('accounts').select('payment_customer_id').execute();
  expect(rows).toEqual([{ payment_customer_id: null }]);
});

/** A processor whose answers the test sets. */
function processor() {
  const orders: string[] = [];
  let answer: () => ChargeAnswer = () => {
    throw new Error('no answer');
  };
  const payments: Payments = {
    name: 'test',
    attach: async () => ({ customerId: 'cus_1' }),
    charge: async ({ key, customerId }) => {
      orders.push(`${key} ${customerId}`);
      return answer();
    },
    findCharge: async () => answer(),
    parseCallback: async ({ body }): Promise<PaymentEvent> =>
      JSON.parse(Buffer.from(body).toString()),
  };
  return {
    payments,
    orders,
    answer: (next: () => ChargeAnswer) => {
      answer = next;
    },
  };
}

const deliver = (event: PaymentEvent) =>
  central.server.inject({ method: 'POST', url: '/payments/callback', payload: event });

it('repeats an unanswered charge under the same key for a day', async () => {
  const { payments, orders } = processor();
  await restartWith(payments);
  await put({ ...FIRST, payment_method_id: 'pm_1' });
  await spend(1, payments);
  for (const pauseMs of [10_000, MINUTE_MS, 10 * MINUTE_MS]) {
    await charge();
    await central.clock.advance(pauseMs - 1);
    await charge();
    await central.clock.advance(1);
  }
  expect(orders).toHaveLength(3);
  expect(new Set(orders)).toEqual(new Set([`${(await topUps())[0]?.id} cus_1`]));
  expect((await topUps())[0]).toMatchObject({ state: 'charging', last_error: 'no answer' });
  await central.clock.advance(23 * HOUR_MS);
  await charge();
  expect([orders.length, await status()]).toEqual([3, 'failed']);
  const [row] = await topUps();
  expect(row).toMatchObject({ state: 'unanswered' });
  // The charge succeeded late and is credited when the processor reports the success.
  await deliver({ externalId: 'pi_1', key: row?.id ?? null, change: { kind: 'succeeded' } });
  expect([await paid(), await status()]).toEqual([25, 'failed']);
});

it('credits once for three callbacks, even if they arrive concurrently with the answer', async () => {
  const { payments, answer } = processor();
  await restartWith(payments);
  await put({ ...FIRST, payment_method_id: 'pm_1' });
  await spend(1, payments);
  const key = (await topUps())[0]?.id ?? null;
  const event: PaymentEvent = { externalId: 'pi_1', key, change: { kind: 'succeeded' } };
  answer(() => ({ state: 'succeeded', externalId: 'pi_1' }));
  await Promise.all([deliver(event), deliver(event), deliver(event), charge()]);
  const accepted = await deliver({ ...event, key: null });
  expect([accepted.statusCode, await paid(), await status()]).toEqual([200, 25, 'idle']);
  expect(await topUps()).toMatchObject([{ external_id: 'pi_1', state: 'succeeded' }]);
});

it('debits refunds by their cumulative total, never more than was paid, and acknowledges callbacks for unknown charges', async () => {
  const { payments, answer } = processor();
  await restartWith(payments);
  await put({ ...FIRST, payment_method_id: 'pm_1' });
  await spend(1, payments);
  answer(() => ({ state: 'pending', externalId: 'pi_1' }));
  await charge();
  const refunded = (totalUsd: number) =>
    deliver({
      externalId: 'pi_1',
      key: null,
      change: { kind: 'refunded', totalUusd: totalUsd * USD },
    });
  expect((await refunded(5)).statusCode).toBe(409);
  await deliver({ externalId: 'pi_1', key: null, change: { kind: 'succeeded' } });
  for (const total of [5, 5, 7, 6]) await refunded(total);
  expect(await paid()).toBe(18);
  await deliver({
    externalId: 'pi_1',
    key: null,
    change: { kind: 'disputed', amountUusd: 25 * USD },
  });
  expect([await paid(), (await topUps())[0]]).toMatchObject([
    0,
    { refunded_uusd: 7 * USD, disputed_uusd: 18 * USD },
  ]);
  const unknown = await deliver({ externalId: 'pi_2', key: 'x', change: { kind: 'succeeded' } });
  expect([unknown.statusCode, unknown.json()]).toEqual([200, { received: true }]);
});
