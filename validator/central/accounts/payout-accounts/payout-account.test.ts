import { afterEach, describe, expect, it } from 'vitest';
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
import { createStripePayments } from '../../platform/adapters/stripe-payments.ts';
import { referralDestination } from '../account/referral-payout.ts';

let central: TestCentral;
let account: TestAccount;
afterEach(() => central.close());

async function begin(overrides: Parameters<typeof createTestCentral>[0]): Promise<void> {
  central = await createTestCentral(overrides);
  account = await central.signUp();
}

const send = (method: 'GET' | 'POST') =>
  central.call(method, '/users/me/stripe-connect', { headers: account.key });
const choose = () =>
  central.call('PUT', '/users/me/referral-payout-method', {
    headers: account.key,
    body: { referral_payout_method: 'stripe_connect' },
  });
const me = async () => (await central.call('GET', '/users/me', { headers: account.key })).body;
const open = (url: string) => central.server.inject({ method: 'GET', url: new URL(url).pathname });

describe('with simulated payments', () => {
  it('makes stripe_connect a payout method once the owner has opened the page', async () => {
    await begin({ payments: 'simulated' });
    const nothing = { stripe_connect_account_id: null, onboarding_url: null };
    expect((await send('GET')).body).toEqual({ ...nothing, stripe_onboarding_completed: false });
    const begun = (await send('POST')).body;
    expect(begun.onboarding_url).toMatch(/^https?:\/\/\S+$/);
    const early = await choose();
    expect([early.status, early.body.error.hint]).toEqual([
      400,
      expect.stringContaining('POST /users/me/stripe-connect'),
    ]);
    // Continues the same onboarding.
    expect((await send('POST')).body).toEqual(begun);
    expect((await open(begun.onboarding_url)).json()).toMatchObject({ success: true });
    const { stripe_connect_account_id: id } = begun;
    expect(await me()).toMatchObject({
      stripe_connect_account_id: id,
      stripe_onboarding_completed: true,
    });
    const complete = { stripe_connect_account_id: id, stripe_onboarding_completed: true };
    expect((await send('GET')).body).toEqual({ ...complete, onboarding_url: null });
    expect((await send('POST')).body).toEqual({ ...complete, onboarding_url: null });
    expect((await choose()).body).toMatchObject({ referral_payout_method: 'stripe_connect' });
    expect(await referralDestination(central.ports.db, account.id)).toEqual({
      method: 'stripe_connect',
      address: id,
      network: null,
    });
  });

  it('answers 404 for the page of an unknown onboarding', async () => {
    await begin({ payments: 'simulated' });
    const answer = await open('https://x.example/payments/simulated-onboarding/nobody');
    expect([answer.statusCode, answer.json().error.code]).toEqual([404, 'not_found']);
  });
});

it('refuses the onboarding without a payment processor', async () => {
  await begin({});
  const refused = await send('POST');
  expect([refused.status, refused.body.error.code]).toEqual([400, 'bad_request']);
  expect((await choose()).status).toBe(400);
});

describe('with Stripe', () => {
  let stripe: StripeServer;
  afterEach(() => stripe.close());

  async function beginWithStripe(): Promise<string> {
    stripe = await startStripeServer();
    const clock = createManualClock();
    await begin({ clock, payments: createStripePayments({ ...stripe.options, clock }) });
    const { body } = await send('POST');
    expect(body.onboarding_url).toBe(`https://connect.test/${body.stripe_connect_account_id}`);
    return body.stripe_connect_account_id;
  }

  it('queries Stripe when the method is chosen', async () => {
    const id = await beginWithStripe();
    expect((await choose()).status).toBe(400);
    stripe.onboard(id);
    expect((await choose()).status).toBe(200);
    expect(await me()).toMatchObject({ stripe_onboarding_completed: true });
  });

  it('accepts a signed callback about the account', async () => {
    const id = await beginWithStripe();
    const object = { id, details_submitted: true, payouts_enabled: true };
    const callBack = (type: string, about: object, secret?: string) => {
      const atMs = central.clock.now();
      const { payload, headers } = stripeCallback(type, about, atMs, secret);
      return central.server.inject({ method: 'POST', url: '/payments/callback', payload, headers });
    };
    expect((await callBack('account.updated', object, 'whsec_forged')).statusCode).toBe(401);
    await callBack('account.updated', { ...object, payouts_enabled: false });
    expect(await me()).toMatchObject({ stripe_onboarding_completed: false });
    expect((await callBack('account.updated', { ...object, id: 'acct_x' })).statusCode).toBe(200);
    expect((await callBack('account.updated', object)).statusCode).toBe(200);
    expect(await me()).toMatchObject({ stripe_onboarding_completed: true });
  });
});
