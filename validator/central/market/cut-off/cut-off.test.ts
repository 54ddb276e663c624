/** Tests that pods stop and restart at the exact millisecond and micro-dollar when money runs out or arrives. */
import { afterEach, expect, it } from 'vitest';
import {
  createMeteringScene,
  type MeteringScene,
} from '../../../../test/fakes/scenes/metering-scene.ts';
import { payIn, setAvailable } from '../../../../test/fakes/scenes/wallet.ts';
import { payIn as notePayment } from '../../money/top-ups/paid-credit.ts';
import { createAccountPods } from './cut-off.ts';

/** Credit that pays for 1,000 seconds of one pod; a rental requires money for 900. */
const CREDIT_UUSD = 1_000_000;
const FLOOR_UUSD = 900_000;
const GRACE_MS = 600_000;

let scene: MeteringScene;
afterEach(() => scene.close());

const withCredit = async (signupCreditUusd: number) => {
  scene = await createMeteringScene({ signupCreditUusd });
};
const statusOf = async (id: string) => (await scene.pod(id)).status;

/** Records a payment as the command `ledger pay-in` does. */
async function pay(amountUusd: number, reference: string): Promise<void> {
  const { clock, ports } = scene.market;
  const deps = { clock, random: ports.random };
  const paid = { email: scene.account.email, amountUusd, reference };
  await scene.db
    .transaction()
    .execute((tx) => notePayment(tx, { ...deps, pods: createAccountPods(deps) }, paid));
}

it('stops a pod at the exact millisecond, and restarts it if money arrives a millisecond before the grace period ends', async () => {
  await withCredit(CREDIT_UUSD);
  const id = await scene.running();
  await scene.later(CREDIT_UUSD - 1);
  expect(await statusOf(id)).toBe('RUNNING');
  await scene.later(1);
  expect(await statusOf(id)).toBe('STOPPED');
  const { session: headers } = scene.account;
  const deleted = await scene.market.call('DELETE', '/users/me', { headers });
  expect([deleted.status, deleted.body.details.pods]).toMatchObject([400, [{ id }]]);
  await scene.later(GRACE_MS - 1);
  await pay(CREDIT_UUSD, 'late');
  expect(await statusOf(id)).toBe('PENDING');
  await scene.later(1);
  await scene.later(10_000);
  expect(await statusOf(id)).toBe('RUNNING');
  const pieces = await scene.segments(id);
  expect(pieces[0]).toEqual([0, CREDIT_UUSD, 'running']);
  expect(pieces.at(-1)?.slice(1)).toEqual([null, 'running']);
  expect((await scene.meter(id)).charged_uusd).toBe(CREDIT_UUSD);
});

it('stops a pod at the exact millisecond at which it reaches its spend limit', async () => {
  await withCredit(10 * CREDIT_UUSD);
  const id = await scene.running({ max_spend_usd: 0.123457 });
  await scene.later(123_456);
  expect(await statusOf(id)).toBe('RUNNING');
  await scene.later(1);
  expect(await scene.pod(id)).toMatchObject({ status: 'STOPPED', spent_usd: 0.123457 });
});

it('restarts, oldest first, exactly the pods for which the money suffices for 15 minutes', async () => {
  await withCredit(2 * CREDIT_UUSD);
  const first = await scene.running();
  await scene.later(10);
  const second = await scene.running();
  await scene.later(CREDIT_UUSD - 30_000);
  await scene.later(55_000);
  const both = async () => [await statusOf(first), await statusOf(second)];
  expect(await both()).toEqual(['STOPPED', 'STOPPED']);
  await pay(FLOOR_UUSD - 1, 'one');
  expect(await both()).toEqual(['STOPPED', 'STOPPED']);
  await pay(1, 'two');
  expect(await both()).toEqual(['PENDING', 'STOPPED']);
  // Money that the first pod needs is not available for the second.
  await pay(1, 'three');
  expect(await both()).toEqual(['PENDING', 'STOPPED']);
  const friend = await scene.market.signUp();
  await payIn(scene.db, friend.id, FLOOR_UUSD);
  const body = { recipient_email: scene.account.email, amount: FLOOR_UUSD / 1_000_000 };
  await scene.market.call('POST', '/users/me/transfer-credits', { headers: friend.key, body });
  expect(await both()).toEqual(['PENDING', 'PENDING']);
});

it('does not let a rental, a transfer or another restart spend money reserved for a restarting pod', async () => {
  await withCredit(CREDIT_UUSD);
  const first = await scene.running();
  await scene.later(CREDIT_UUSD - 1);
  await scene.later(1);
  expect(await statusOf(first)).toBe('STOPPED');
  await pay(FLOOR_UUSD, 'one');
  expect(await statusOf(first)).toBe('PENDING');
  const kept = 'Your balance is $0.00 in addition to the $0.90 that your pods need';
  const { market, node, account, call } = scene;
  const rented = await market.rent(account, node.id, { gpu_count: 1 });
  expect([rented.status, rented.body.error.message]).toEqual([403, expect.stringContaining(kept)]);
  const friend = await market.signUp();
  const body = { recipient_email: friend.email, amount: 0.01 };
  const sent = await call('POST', '/users/me/transfer-credits', body);
  expect([sent.status, sent.body.error?.message]).toEqual([403, expect.stringContaining(kept)]);
  expect((await scene.me()).available).toBe(FLOOR_UUSD / 1_000_000);
});

it('does not restart two pods with the same money, and reports the missing amount', async () => {
  await withCredit(4 * CREDIT_UUSD);
  const ids = [
    await scene.running({ max_spend_usd: 0.1 }),
    await scene.running({ max_spend_usd: 0.1 }),
  ];
  await scene.later(99_999);
  await scene.later(1);
  expect(await Promise.all(ids.map(statusOf))).toEqual(['STOPPED', 'STOPPED']);
  await setAvailable(scene.db, 2 * FLOOR_UUSD - 1);
  const raise = (id = '', more = {}) =>
    scene.call('PATCH', `/pods/${id}`, { max_spend_usd: 5, ...more });
  const first = await raise(ids[0]);
  expect([first.status, first.body.status]).toEqual([200, 'PENDING']);
  const refused = await raise(ids[1], { pod_name: 'other' });
  expect([refused.status, refused.body.error.code]).toEqual([403, 'insufficient_balance']);
  expect(refused.body.error.message).toContain('so starting it again requires at least ');
  expect(await scene.pod(ids[1] ?? '')).toMatchObject({ status: 'STOPPED', pod_name: 'mine' });
  // A pod that has already reached its limit is not restarted and requires no money.
  expect((await raise(ids[1], { max_spend_usd: 0.06 })).body.status).toBe('STOPPED');
  await pay(1, 'last');
  expect((await raise(ids[1])).body.status).toBe('PENDING');
});

it.each([
  [FLOOR_UUSD, 0],
  [FLOOR_UUSD + 1, 1],
])(
  'pays a first settlement of %d micro-dollars from the hold, of which %d are paid from available money',
  async (uusd, beside) => {
    await withCredit(10 * CREDIT_UUSD);
    const id = await scene.running();
    await scene.later(uusd);
    await scene.tick();
    expect((await scene.meter(id)).charged_uusd).toBe(uusd);
    const { lines } = (await scene.call('GET', '/users/me/ledger')).body;
    const paidBy = (cause: string) =>
      lines
        .filter((line: { cause_type: string }) => line.cause_type === cause)
        .reduce((sum: number, line: { amount_usd: number }) => sum - line.amount_usd, 0);
    expect(paidBy('usage') * 1_000_000).toBeCloseTo(beside, 3);
    const balance = (10 * CREDIT_UUSD - uusd) / 1_000_000;
    expect(await scene.me()).toMatchObject({ held: 0, balance, available: balance });
  },
);
