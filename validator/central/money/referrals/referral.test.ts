import { afterEach, beforeEach, expect, it } from 'vitest';
import { createPodScene, type PodScene } from '../../../../test/fakes/scenes/pod-scene.ts';
import { setAvailable, testCause } from '../../../../test/fakes/scenes/wallet.ts';
import { auditLedger } from '../ledger/audit.service.ts';
import { postGroup } from '../ledger/ledger.service.ts';
import { referralShare } from '../ledger/shares.ts';
import { balancesOf, paidAccount } from '../ledger/wallet.service.ts';
import { referralAccount } from './referral.service.ts';

const USD = 1_000_000;
let scene: PodScene;
beforeEach(async () => {
  scene = await createPodScene();
});
afterEach(async () => {
  const { db } = scene.market.ports;
  expect((await db.transaction().execute(auditLedger)).findings).toEqual([]);
  await scene.close();
});

async function signUp(code: string) {
  const body = { email: 'brought@example.com', password: 'correct horse', referral_code: code };
  return scene.market.call('POST', '/users', { body });
}

/** Creates a referrer of the scene's renter and replaces the renter's granted credit by paid credit. */
async function createReferrer() {
  const { db } = scene.market.ports;
  const referrer = await scene.market.signUp();
  const row = { account_id: scene.account.id, referrer_id: referrer.id, created_at: 0 };
  await db
    .insertInto('referrals')
    .values({ ...row, paid_uusd: 0, accrued_uusd: 0, seq: 0 })
    .execute();
  await setAvailable(db, 0, scene.account.id);
  const leg = { debit: 'external:topup', credit: paidAccount(scene.account.id) } as const;
  await db
    .transaction()
    .execute((tx) => postGroup(tx, [{ ...leg, amountUusd: 500 * USD }], testCause()));
  await db.updateTable('executors').set({ price_uusd_per_gpu_hour: 1_234_567_891 }).execute();
  return referrer;
}

const earnedBy = async (id: string) =>
  (await balancesOf(scene.market.ports.db, referralAccount(id))).posted;
const spentUsd = async (id: string) => (await scene.pod(id)).spent_usd;

it('records the referrer at sign-up and rejects an unknown code', async () => {
  const { referral_code: code } = (await scene.call('GET', '/users/me')).body;
  expect((await signUp('nobody')).body).toMatchObject({ message: expect.stringContaining('code') });
  const made = await signUp(code);
  expect(made.status).toBe(200);
  const rows = await scene.market.ports.db.selectFrom('referrals').selectAll().execute();
  expect(rows).toMatchObject([
    { account_id: made.body.user.id, referrer_id: scene.account.id, paid_uusd: 0, accrued_uusd: 0 },
  ]);
});

it('credits a fifth of the fee on paid usage, for every settlement interval', async () => {
  const referrer = await createReferrer();
  const id = await scene.running();
  for (const ms of [10_000, 333, 7, 25_000]) {
    await scene.later(ms);
    await scene.market.central.meterPods();
  }
  await scene.remove(id);
  await scene.later();
  const spent = Math.round((await spentOf(id)) * USD);
  expect(spent).toBeGreaterThan(10 * USD);
  expect(await earnedBy(referrer.id)).toBe(referralShare(spent));
  expect(referralShare(10 * USD)).toBe(100_000);
  const { body } = await scene.market.call('GET', '/users/me', { headers: referrer.key });
  expect(body.pending_referral_balance).toBe(referralShare(spent) / USD);
});

const spentOf = async (id: string) =>
  (await scene.call('GET', `/pods/${id}/statement`)).body.total as number;

it('credits nothing for granted credit or to a deleted referrer', async () => {
  const referrer = await createReferrer();
  await setAvailable(scene.market.ports.db, 540 * USD, scene.account.id);
  const id = await scene.running();
  await scene.later(50_000);
  await scene.market.central.meterPods();
  expect(await spentUsd(id)).toBeLessThan(40);
  expect(await earnedBy(referrer.id)).toBe(0);
  const gone = await scene.market.call('DELETE', '/users/me', { headers: referrer.session });
  expect(gone.status).toBe(200);
  for (let round = 0; round < 3; round += 1) {
    await scene.later(50_000);
    await scene.market.central.meterPods();
  }
  expect(await spentUsd(id)).toBeGreaterThan(40);
  expect(await earnedBy(referrer.id)).toBe(0);
});

it('debits the referral credit with a refund, below 0 if the credit was paid out', async () => {
  const referrer = await createReferrer();
  const id = await scene.running();
  await scene.later(30_000);
  // The pod is unhealthy from now on.
  scene.host.change(id, { phase: 'backoff' });
  for (const ms of [30_000, 30_000]) await scene.later(ms);
  await scene.market.central.meterPods();
  const before = await earnedBy(referrer.id);
  expect(before).toBeGreaterThan(0);
  // Simulates an earlier payout.
  const leg = { debit: referralAccount(referrer.id), credit: 'external:payout' } as const;
  await scene.market.ports.db
    .transaction()
    .execute((tx) => postGroup(tx, [{ ...leg, amountUusd: before }], testCause()));
  scene.host.up = false;
  await scene.later(70_000);
  await scene.later(3 * 3_600_000);
  expect((await scene.pod(id)).status).toBe('BROKEN');
  const row = await scene.market.ports.db.selectFrom('referrals').selectAll().executeTakeFirst();
  const kept = Math.round((await spentOf(id)) * USD);
  expect(row).toMatchObject({ paid_uusd: kept, accrued_uusd: referralShare(kept) });
  expect(referralShare(kept)).toBeLessThan(before);
  expect(await earnedBy(referrer.id)).toBe(referralShare(kept) - before);
  const { body } = await scene.market.call('GET', '/users/me', { headers: referrer.key });
  expect(body.pending_referral_balance).toBeLessThan(0);
});
