import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  type StripeServer,
  startStripeServer,
  stripeCallback,
} from '../../../../test/fakes/external/stripe-server.ts';
import { createManualClock } from '../../../../test/fakes/manual-clock.ts';
import {
  createTestCentral,
  type TestAccount,
  type TestCentral,
} from '../../../../test/fakes/scenes/central-fixture.ts';
import { createAccountPods } from '../../market/cut-off/cut-off.ts';
import { createStripePayments } from '../../platform/adapters/stripe-payments.ts';
import type { Payments } from '../../platform/ports.ts';
import { walletOf } from '../ledger/wallet.service.ts';
import { createAutoTopUps } from './auto-top-up.service.ts';

const USD = 1_000_000;

let stripe: StripeServer;
let payments: Payments;
let central: TestCentral;
let account: TestAccount;
beforeEach(async () => {
  stripe = await startStripeServer();
  const clock = createManualClock();
  payments = createStripePayments({ ...stripe.options, clock });
  central = await createTestCentral({ clock, payments });
  account = await central.signUp();
});
afterEach(async () => {
  await central.close();
  await stripe.close();
});

const put = (method: string) =>
  central.call('PUT', '/users/me/auto-top-up', {
    headers: account.key,
    body: { enabled: true, threshold_usd: 10, amount_usd: 25.5, payment_method_id: method },
  });
const shown = async () =>
  (await central.call('GET', '/users/me/auto-top-up', { headers: account.key })).body;
const paid = async () => (await walletOf(central.ports.db, account.id)).paid / USD;
const charge = () => central.central.chargeTopUps();

/** Begins a charge after a spend that leaves a balance of one dollar, and sends the charge to Stripe. */
async function topUp(): Promise<void> {
  const { db, clock, random } = central.ports;
  const auto = createAutoTopUps({
    db,
    clock,
    random,
    payments,
    pods: createAccountPods({ clock, random }),
  });
  const funds = { available: USD, burnPerHour: USD, runsOutAtMs: null };
  await db.transaction().execute((tx) => auto.afterSpend(tx, new Map([[account.id, funds]])));
  await charge();
}

function callBack(type: string, object: object, change: { atMs?: number; secret?: string } = {}) {
  const { atMs = central.clock.now(), secret } = change;
  const { payload, headers } = stripeCallback(type, object, atMs, secret);
  return central.server.inject({ method: 'POST', url: '/payments/callback', payload, headers });
}

it('attaches a card to a customer of the account and charges it off-session in cents', async () => {
  expect((await put('pm_ok')).status).toBe(200);
  await topUp();
  expect(stripe.intents()).toMatchObject([{ amount: 2_550, currency: 'usd' }]);
  expect([await paid(), (await shown()).status]).toEqual([25.5, 'idle']);
  const { body } = await central.call('GET', '/users/me', { headers: account.key });
  expect(body.stripe_customer_id).toMatch(/^cus_/);
});

it('rejects an unknown card, and reports a processor that does not answer', async () => {
  expect((await put('pm_unknown')).status).toBe(400);
  stripe.fail(true);
  const away = await put('pm_ok');
  expect([away.status, away.body.error.code]).toEqual([502, 'upstream_unavailable']);
  expect(await shown()).toBeNull();
});

it.each([
  ['pm_declined', 'do_not_honor'],
  ['pm_action', 'the bank requires the payer’s consent'],
])('records why %s was not charged', async (method, reason) => {
  await put(method);
  await topUp();
  expect(await shown()).toMatchObject({ status: 'failed', last_error: reason });
  expect(await paid()).toBe(0);
});

it('charges once although the first answer was lost', async () => {
  await put('pm_ok');
  stripe.fail(true);
  await topUp();
  expect((await shown()).status).toBe('charging');
  stripe.fail(false);
  const { db } = central.ports;
  const [row] = await db.selectFrom('topups').selectAll().execute();
  const { id: key = '', payment_method_id: paymentMethodId = '', amount_uusd = 0 } = row ?? {};
  const { payment_customer_id: customerId } = await db
    .selectFrom('accounts')
    .select('payment_customer_id')
    .executeTakeFirstOrThrow();
  // The request arrived, but the answer was lost.
  await payments.charge({ key, customerId, paymentMethodId, amountUusd: amount_uusd });
  await central.clock.advance(10_000);
  await charge();
  expect([stripe.intents().length, await paid()]).toEqual([1, 25.5]);
});

it('queries a pending charge until Stripe reports its result', async () => {
  await put('pm_processing');
  await topUp();
  expect([(await shown()).status, await paid()]).toEqual(['charging', 0]);
  stripe.finish('succeeded');
  await central.clock.advance(10_000);
  await charge();
  expect([(await shown()).status, await paid()]).toEqual(['idle', 25.5]);
});

it('credits a signed callback once, even if it arrives repeatedly', async () => {
  await put('pm_processing');
  await topUp();
  const [intent = { id: '', metadata: {} }] = stripe.intents();
  for (const _ of [1, 2, 3]) {
    const answer = await callBack('payment_intent.succeeded', intent);
    expect([answer.statusCode, answer.json()]).toEqual([200, { received: true }]);
  }
  expect(await paid()).toBe(25.5);
  await callBack('charge.refunded', {
    payment_intent: intent.id,
    amount_refunded: 550,
    metadata: intent.metadata,
  });
  expect(await paid()).toBe(20);
  await callBack('charge.dispute.created', { payment_intent: intent.id, amount: 2_000 });
  expect([await paid(), (await shown()).status]).toEqual([0, 'suspended']);
});

it('applies a decline and ignores events about other objects', async () => {
  await put('pm_processing');
  await topUp();
  const [intent = {}] = stripe.intents();
  const problem = { decline_code: 'insufficient_funds' };
  await callBack('payment_intent.payment_failed', { ...intent, last_payment_error: problem });
  expect(await shown()).toMatchObject({ status: 'failed', last_error: 'insufficient_funds' });
  expect((await callBack('customer.created', { id: 'cus_1' })).statusCode).toBe(200);
  const other = { id: 'pi_other', metadata: {} };
  expect((await callBack('payment_intent.succeeded', other)).statusCode).toBe(200);
  expect(await paid()).toBe(0);
});

it('rejects callbacks without a recent Stripe signature', async () => {
  await put('pm_processing');
  await topUp();
  const [intent = {}] = stripe.intents();
  const type = 'payment_intent.succeeded';
  const nowMs = central.clock.now();
  const forged = await callBack(type, intent, { secret: 'whsec_other' });
  expect([forged.statusCode, forged.json().error.code]).toEqual([401, 'unauthorized']);
  expect((await callBack(type, intent, { atMs: nowMs - 301_000 })).statusCode).toBe(401);
  const other = { id: 'pi_other', metadata: {} };
  expect((await callBack(type, other, { atMs: nowMs - 300_000 })).statusCode).toBe(200);
  const { payload, headers } = stripeCallback(type, intent, nowMs);
  const post = (sent: object) =>
    central.server.inject({ method: 'POST', url: '/payments/callback', ...sent });
  const { 'stripe-signature': _, ...unsigned } = headers;
  expect((await post({ payload, headers: unsigned })).statusCode).toBe(401);
  expect((await post({ payload: ` ${payload}`, headers })).statusCode).toBe(401);
  expect((await post({})).statusCode).toBe(400);
  expect(await paid()).toBe(0);
  expect((await post({ payload, headers })).statusCode).toBe(200);
  expect(await paid()).toBe(25.5);
});
