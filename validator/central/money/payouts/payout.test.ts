import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createPayoutScene, type PayoutScene } from '../../../../test/fakes/scenes/payout-scene.ts';
import { setAvailable, testCause } from '../../../../test/fakes/scenes/wallet.ts';
import { holdPayout } from '../ledger/hold.service.ts';
import { postGroup } from '../ledger/ledger.service.ts';
import { walletOf } from '../ledger/wallet.service.ts';
import { providerAccount } from '../metering/settlement.plan.ts';
import { createPayoutJob } from './payout.job.ts';
import { accountOfParty } from './payout.service.ts';

const USD = 1_000_000;
const MINUTE_MS = 60_000;
/** Pause between the first and the second request to the processor. */
const FIRST_PAUSE_MS = 10_000;
const LEASE_MS = 120_000;
const DAY_MS = 86_400_000;

let scene: PayoutScene;
beforeEach(async () => {
  scene = await createPayoutScene();
});
afterEach(async () => {
  expect(await scene.findings()).toEqual([]);
  await scene.close();
});

const refusal = (answer: object) => ('refused' in answer ? answer.refused : 'requested');
const states = async () => (await scene.rows()).map(({ state }) => state);

describe('a payout', () => {
  it('takes all earnings, is held when requested and leaves the ledger once', async () => {
    const { provider, payouts } = scene;
    await scene.earn(provider, 9_999_999);
    expect(refusal(await payouts.request(provider))).toBe('too_little');
    await scene.earn(provider, 15 * USD);
    expect(refusal(await payouts.request(provider))).toBe('requested');
    expect(await scene.balance(provider)).toEqual({ posted: 24_999_999, pending: 24_999_999 });
    expect(await scene.paidToWorld()).toBe(0);
    await scene.earn(provider, 20 * USD);
    expect(refusal(await payouts.request(provider))).toBe('open');
    await Promise.all([scene.payOut(), scene.payOut()]);
    const { hotkey } = scene.market.provider;
    expect(await scene.rows()).toMatchObject([
      {
        state: 'paid',
        method: 'hotkey',
        address: hotkey,
        processor: 'simulated',
        attempts: 1,
        external_id: expect.stringMatching(/^simulated_/),
      },
    ]);
    expect(await scene.paidToWorld()).toBe(24_999_999);
    expect(await scene.balance(provider)).toEqual({ posted: 20 * USD, pending: 0 });
    await scene.payOut();
    expect((await scene.books()).map(({ asked }) => asked)).toEqual([1]);
  });

  it.each([
    ['sim_declined', ['voided'], ['voided'], 0, 1],
    ['sim_late', ['pending'], ['paid'], 30, 2],
    ['sim_late_declined', ['pending'], ['voided'], 0, 2],
    ['sim_lost', ['requested'], ['paid'], 30, 2],
  ] as const)('with result %s is decided', async (behaviour, first, later, paidUsd, asked) => {
    const { provider, payouts } = scene;
    scene.behave(behaviour);
    await scene.earn(provider, 30 * USD);
    await payouts.request(provider);
    await scene.payOut();
    expect(await states()).toEqual(first);
    const [{ due_at: dueAt = 0 } = {}] = await scene.rows();
    const waits = first[0] === 'voided' ? LEASE_MS : FIRST_PAUSE_MS;
    expect(dueAt - scene.market.clock.now()).toBe(waits);
    await scene.market.clock.advance(2 * MINUTE_MS);
    await scene.payOut();
    expect(await states()).toEqual(later);
    expect(await scene.paidToWorld()).toBe(paidUsd * USD);
    expect(await scene.balance(provider)).toEqual({ posted: (30 - paidUsd) * USD, pending: 0 });
    expect(await scene.books()).toMatchObject([{ asked, amount_uusd: 30 * USD }]);
    await scene.earn(provider, 10 * USD);
    expect(refusal(await payouts.request(provider))).toBe('requested');
  });

  it('is created once for twenty concurrent requests', async () => {
    await scene.earn(scene.provider, 30 * USD);
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => scene.payouts.request(scene.provider)),
    );
    expect(answers.map(refusal).toSorted()).toEqual([...Array(19).fill('open'), 'requested']);
    await Promise.all(Array.from({ length: 20 }, scene.payOut));
    expect([await states(), await scene.paidToWorld()]).toEqual([['paid'], 30 * USD]);
  });

  it('is decided by the first answer, except when money was paid after all', async () => {
    const { provider, payouts } = scene;
    const request = async () => {
      const answer = await payouts.request(provider);
      return 'payout' in answer ? answer.payout.id : '';
    };
    const paid = { state: 'paid', externalId: 'x' } as const;
    const declined = { state: 'declined', externalId: null, reason: 'no' } as const;
    await scene.earn(provider, 30 * USD);
    const first = await request();
    const settled = await Promise.all(
      [paid, paid, paid].map((answer) => payouts.settle(first, 'test', answer)),
    );
    expect(settled.filter((isNews) => isNews)).toEqual([true]);
    expect(await payouts.settle(first, 'test', declined)).toBe(false);
    expect([await states(), await scene.paidToWorld()]).toEqual([['paid'], 30 * USD]);
    await scene.earn(provider, 30 * USD);
    const second = await request();
    await payouts.settle(second, 'test', declined);
    const third = await request();
    await payouts.settle(third, 'test', paid);
    // The processor paid the second one after all.
    expect(await payouts.settle(second, 'test', paid)).toBe(true);
    expect(await scene.balance(provider)).toEqual({ posted: -30 * USD, pending: 0 });
    await scene.earn(provider, 35 * USD);
    expect(await payouts.request(provider)).toEqual({
      refused: 'too_little',
      payableUusd: 5 * USD,
    });
  });

  it('is requested again under the same key after a crash', async () => {
    const { provider, db, processor } = scene;
    const { clock, ports } = scene.market;
    await scene.earn(provider, 30 * USD);
    await scene.payouts.request(provider);
    const sent = Promise.withResolvers<void>();
    const job = createPayoutJob({
      db,
      clock,
      log: ports.log,
      payouts: scene.payouts,
      processor: {
        name: 'test',
        async send(order) {
          await processor.send(order);
          sent.resolve();
          return new Promise(() => undefined);
        },
      },
    });
    void job.runOnce();
    await sent.promise;
    await scene.payOut();
    expect(await states()).toEqual(['requested']);
    await clock.advance(3 * MINUTE_MS);
    await scene.payOut();
    expect([await states(), await scene.paidToWorld()]).toEqual([['paid'], 30 * USD]);
    expect(await scene.books()).toMatchObject([{ asked: 2 }]);
  });

  it('never exceeds unpaid earnings', async () => {
    const account = providerAccount(scene.provider.id);
    await scene.earn(scene.provider, 10 * USD);
    const place = (uusd: number) =>
      scene.db.transaction().execute((tx) => holdPayout(tx, account, uusd, testCause()));
    await expect(place(10 * USD + 1)).rejects.toMatchObject({ code: 'insufficient_balance' });
    const placed = await Promise.allSettled([place(6 * USD), place(6 * USD)]);
    expect(placed.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
  });

  it('is not sent if its provider was banned since the request, and is paid after the end of the ban', async () => {
    const { provider, payouts, db } = scene;
    const setBan = (at: number | null) =>
      db.updateTable('providers').set({ banned_at: at }).execute();
    await scene.earn(provider, 30 * USD);
    await payouts.request(provider);
    await setBan(1);
    await scene.payOut();
    expect(await scene.rows()).toMatchObject([
      { state: 'voided', last_error: expect.stringContaining('banned') },
    ]);
    expect(await scene.books()).toEqual([]);
    expect(await scene.balance(provider)).toEqual({ posted: 30 * USD, pending: 0 });
    await setBan(null);
    await payouts.request(provider);
    await scene.payOut();
    expect(await scene.paidToWorld()).toBe(30 * USD);
  });

  it('is refused to banned providers', async () => {
    await scene.earn(scene.provider, 30 * USD);
    await scene.db.updateTable('providers').set({ banned_at: 1 }).execute();
    expect(refusal(await scene.payouts.request(scene.provider))).toBe('no_destination');
  });
});

it("pays a provider's earnings except the last day, and billing shows it", async () => {
  await setAvailable(scene.db, 1_000 * USD);
  await scene.db
    .updateTable('executors')
    .set({ price_uusd_per_gpu_hour: 3_600 * USD })
    .execute();
  const id = await scene.running();
  await scene.later(30_000);
  await scene.remove(id);
  await scene.later();
  const token = await scene.market.logIn();
  const status = async () =>
    (await scene.market.portal('GET', '/billing', { token })).body.data.map(
      (row: { status: string }) => row.status,
    );
  const { posted } = await scene.balance(scene.provider);
  expect(posted).toBeGreaterThan(25 * USD);
  expect(await scene.payouts.request(scene.provider)).toEqual({
    refused: 'too_little',
    payableUusd: 0,
  });
  await scene.market.clock.advance(2 * DAY_MS);
  await scene.payouts.request(scene.provider);
  expect(await status()).toEqual(['pending']);
  await scene.payOut();
  expect([await scene.paidToWorld(), await status()]).toEqual([posted, ['paid']]);
});

describe('referral earnings', () => {
  const me = async () => (await scene.call('GET', '/users/me')).body;

  it("become the account's credit with method balance", async () => {
    await scene.earn(scene.referrer, 9_999);
    expect(refusal(await scene.payouts.request(scene.referrer))).toBe('too_little');
    await scene.earn(scene.referrer, 2 * USD);
    expect(await me()).toMatchObject({ pending_referral_balance: 2.009999 });
    await scene.payouts.request(scene.referrer);
    expect(await states()).toEqual(['paid']);
    expect((await walletOf(scene.db, scene.account.id)).paid).toBe(2_009_999);
    expect(await me()).toMatchObject({ pending_referral_balance: 0 });
    const [event] = (await scene.call('GET', '/users/me/events')).body;
    expect(event.detail).toBe('$2.00 for referrals paid');
    const lines = (await scene.call('GET', '/users/me/ledger')).body.lines;
    expect(lines.at(-1)).toMatchObject({ counterpart: 'referral', amount_usd: 2.009999 });
  });

  it('are paid once they cannot be refunded', async () => {
    const { db, referrer, payouts } = scene;
    const leg = { debit: 'platform:fee', credit: accountOfParty(referrer) } as const;
    const accrue = (amountUusd: number) => {
      const cause = testCause({ atMs: scene.market.clock.now() });
      return db.transaction().execute((tx) => postGroup(tx, [{ ...leg, amountUusd }], cause));
    };
    await accrue(USD);
    await scene.market.clock.advance(DAY_MS);
    await accrue(2 * USD);
    expect(await payouts.request(referrer)).toEqual({ refused: 'too_little', payableUusd: 0 });
    await scene.market.clock.advance(DAY_MS);
    expect(await payouts.request(referrer)).toMatchObject({ payout: { amount_uusd: USD } });
    await scene.market.clock.advance(DAY_MS);
    expect(await payouts.request(referrer)).toMatchObject({ payout: { amount_uusd: 2 * USD } });
  });

  it('go to the address set at the time of the request', async () => {
    await scene.earn(scene.referrer, 20 * USD);
    const put = (network: string) =>
      scene.market.call('PUT', '/users/me/referral-payout-method', {
        headers: scene.account.session,
        body: {
          referral_payout_method: 'crypto',
          crypto_address: '5Grwva-EF',
          crypto_network: network,
        },
      });
    await put('sim_declined');
    await scene.payouts.request(scene.referrer);
    await put('bittensor');
    await scene.payOut();
    expect(await scene.rows()).toMatchObject([
      { state: 'voided', method: 'crypto', address: '5Grwva-EF', network: 'sim_declined' },
    ]);
    expect((await scene.call('GET', '/users/me/events')).body[0].detail).toMatch(/not paid/);
    expect(await me()).toMatchObject({ pending_referral_balance: 20 });
    await scene.payouts.request(scene.referrer);
    await scene.payOut();
    expect([await states(), await scene.paidToWorld()]).toEqual([['voided', 'paid'], 20 * USD]);
  });
});
