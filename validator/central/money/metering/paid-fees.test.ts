import { afterEach, beforeEach, expect, it } from 'vitest';
import { createPodScene, type PodScene } from '../../../../test/fakes/scenes/pod-scene.ts';
import { setAvailable, testCause } from '../../../../test/fakes/scenes/wallet.ts';
import { postGroup } from '../ledger/ledger.service.ts';
import { netFee } from '../ledger/shares.ts';
import { paidAccount } from '../ledger/wallet.service.ts';

const USD = 1_000_000;
const PRICE_UUSD = 1_234_567_891;

let scene: PodScene;
beforeEach(async () => {
  scene = await createPodScene();
  const { db } = scene.market.ports;
  await setAvailable(db, 0, scene.account.id);
  await db.updateTable('executors').set({ price_uusd_per_gpu_hour: PRICE_UUSD }).execute();
});
afterEach(() => scene.close());

async function pay(usd: number) {
  const leg = { debit: 'external:topup', credit: paidAccount(scene.account.id) } as const;
  await scene.market.ports.db
    .transaction()
    .execute((tx) => postGroup(tx, [{ ...leg, amountUusd: usd * USD }], testCause()));
}

/** The fees of the scene's node, as validators receive them after a settlement. */
async function listed(): Promise<number> {
  await scene.market.central.meterPods();
  const { body } = await scene.market.asValidator('/executors', {});
  return body[0].paid_fees_uusd;
}
const meter = () =>
  scene.market.ports.db.selectFrom('usage_meters').selectAll().executeTakeFirstOrThrow();

it('counts the fee on paid credit up to the last healthy minute, and the rest when the pod has ended', async () => {
  await pay(500);
  const id = await scene.running();
  const fees: number[] = [];
  for (let round = 0; round < 4; round += 1) {
    await scene.later(45_000);
    fees.push(await listed());
  }
  expect(fees.toSorted((a, b) => a - b)).toEqual(fees);
  const { charged_uusd: charged } = await meter();
  const minute = PRICE_UUSD / 60 + 1;
  expect(fees.at(-1)).toBeGreaterThanOrEqual(netFee(charged - Math.ceil(minute)) - 1);
  await scene.remove(id);
  await scene.later(60_000);
  expect(await listed()).toBe(netFee((await meter()).charged_uusd));
});

it('does not count usage that was paid with granted credit', async () => {
  await setAvailable(scene.market.ports.db, 100 * USD, scene.account.id);
  await pay(400);
  const id = await scene.running();
  for (let round = 0; round < 8; round += 1) await scene.later(45_000);
  await scene.remove(id);
  await scene.later(60_000);
  const fee = await listed();
  const { charged_uusd: charged, granted_uusd: granted } = await meter();
  expect([granted, fee]).toEqual([100 * USD, netFee(charged - 100 * USD)]);
});

it('never counts a fee that a fault of the provider returns', async () => {
  await pay(500);
  const id = await scene.running();
  await scene.later(45_000);
  const healthy = await listed();
  // The provider keeps the pod unhealthy, and lets it break later.
  scene.host.change(id, { phase: 'backoff' });
  const fees: number[] = [];
  for (let round = 0; round < 4; round += 1) {
    await scene.later(45_000);
    fees.push(await listed());
  }
  const { charged_uusd: charged } = await meter();
  scene.host.up = false;
  await scene.later(70_000);
  await scene.later(3 * 3_600_000);
  expect((await scene.pod(id)).status).toBe('BROKEN');
  const after = await listed();
  const { charged_uusd, refunded_uusd } = await meter();
  expect(refunded_uusd).toBeGreaterThan(0);
  expect(after).toBe(netFee(charged_uusd - refunded_uusd));
  expect(after).toBeLessThan(netFee(charged));
  for (const fee of [healthy, ...fees]) expect(fee).toBeLessThanOrEqual(after);
});
