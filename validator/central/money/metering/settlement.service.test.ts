/** Tests that lowering a limit or a balance never makes earlier use free of charge. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  createMeteringScene,
  type MeteringScene,
} from '../../../../test/fakes/scenes/metering-scene.ts';
import { payIn } from '../../../../test/fakes/scenes/wallet.ts';

/** One dollar pays for 1,000 seconds; 15 minutes cost 0.90. */
const USD = 1_000_000;
const MINUTE_MS = 60_000;
/** Interval between contacts with a node. */
const SYNC_MS = 10_000;

let scene: MeteringScene;
beforeEach(async () => {
  scene = await createMeteringScene({ signupCreditUusd: 0, payments: 'simulated' });
});
afterEach(() => scene.close());

const pay = (usd: number) => payIn(scene.db, scene.account.id, usd * USD);

/** Starts a pod of an account with this balance. */
async function runningWith(usd: number): Promise<string> {
  await pay(usd);
  return scene.running();
}

const cap = (id: string, usd: number | null) =>
  scene.call('PATCH', `/pods/${id}`, { max_spend_usd: usd });
const send = (email: string, amount: number) =>
  scene.call('POST', '/users/me/transfer-credits', { recipient_email: email, amount });

it("charges a pod's use up to the time at which its limit is lowered below its cost", async () => {
  const id = await runningWith(10);
  await scene.live(MINUTE_MS);
  expect((await cap(id, 0.06)).status).toBe(200);
  expect((await scene.meter(id)).charged_uusd).toBe(MINUTE_MS);
  await scene.later(0);
  expect(await scene.pod(id)).toMatchObject({ status: 'STOPPED', spent_usd: 0.06 });
  expect(await scene.segments(id)).toEqual([
    [0, MINUTE_MS, 'running'],
    [MINUTE_MS, null, 'max_spend_reached'],
  ]);
});

it('charges use before a limit was lowered, even if the limit is removed at once or the pod is deleted', async () => {
  const id = await runningWith(10);
  for (let round = 1; round <= 3; round += 1) {
    await scene.live(MINUTE_MS);
    await scene.market.clock.advance(5_000);
    await cap(id, 0.06);
    await scene.market.central.runDue();
    await scene.tick();
    await cap(id, null);
    await scene.live(2 * SYNC_MS);
    expect((await scene.pod(id)).status).toBe('RUNNING');
  }
  await scene.market.clock.advance(5_000);
  await cap(id, 0.06);
  await scene.remove(id);
  const free = (await scene.segments(id)).filter(([, , cause]) => cause === 'max_spend_reached');
  expect(free.map(([from, to]) => Number(to) - Number(from))).toEqual([0, 0, 0]);
  expect((await scene.meter(id)).charged_uusd).toBeGreaterThan(3 * MINUTE_MS);
});

it('counts the time between the last contact and the new limit as used', async () => {
  const id = await runningWith(10);
  await scene.live(MINUTE_MS);
  await scene.market.clock.advance(7_000);
  await cap(id, 0.06);
  await scene.market.clock.advance(1_000);
  await scene.market.sync();
  expect(await scene.segments(id)).toEqual([
    [0, MINUTE_MS + 7_000, 'running'],
    [MINUTE_MS + 7_000, null, 'max_spend_reached'],
  ]);
  expect((await scene.meter(id)).charged_uusd).toBe(MINUTE_MS + 7_000);
});

it('keeps the stop instant of a pod whose money has run out, despite later changes', async () => {
  const id = await runningWith(1);
  await scene.live(MINUTE_MS);
  await scene.market.clock.advance(40 * MINUTE_MS);
  await cap(id, 0.06);
  await scene.market.sync();
  await scene.later(MINUTE_MS);
  expect((await scene.meter(id)).charged_uusd).toBe(USD);
  expect((await scene.meter(id)).absorbed_uusd).toBe(0);
});

it('transfers only money that remains after a settlement and the reservation for 15 minutes', async () => {
  const friend = await scene.market.signUp();
  const id = await runningWith(3);
  await scene.live(100_000);
  const refused = await send(friend.email, 2.000001);
  expect([refused.status, refused.body.error.code]).toEqual([403, 'insufficient_balance']);
  expect(refused.body.message).toMatch(
    /balance is \$2\.00 in addition to the \$0\.90 that your pods/,
  );
  expect((await send(friend.email, 2)).status).toBe(200);
  expect((await scene.meter(id)).charged_uusd).toBe(100_000);
  await scene.tick();
  await scene.live(30_000);
  expect((await scene.pod(id)).status).toBe('RUNNING');
  expect((await send(friend.email, 0.000001)).status).toBe(403);
});

it('rejects a rental that would use money that running pods need for their next 15 minutes', async () => {
  const id = await runningWith(1.9);
  await scene.live(200_000);
  const request = { gpu_count: 1 };
  const refused = await scene.market.rent(scene.account, scene.node.id, request);
  expect([refused.status, refused.body.error.code]).toEqual([403, 'insufficient_balance']);
  expect(refused.body.message).toMatch(
    /requires at least \$0\.90 \(15 minutes of runtime\)\. Your balance is \$0\.80 in addition to/,
  );
  await pay(0.1);
  expect((await scene.market.rent(scene.account, scene.node.id, request)).status).toBe(200);
  await scene.tick();
  await scene.live(MINUTE_MS);
  expect((await scene.pod(id)).status).toBe('RUNNING');
});

it('settles use before a dispute returns the money', async () => {
  const id = await runningWith(1);
  await scene.call('PUT', '/users/me/auto-top-up', {
    enabled: true,
    threshold_usd: 5,
    amount_usd: 5,
    payment_method_id: 'sim_disputed',
  });
  const { chargeTopUps } = scene.market.central;
  await chargeTopUps();
  await scene.live(2_000_000);
  await chargeTopUps();
  await scene.later(0);
  expect(await scene.pod(id)).toMatchObject({ status: 'STOPPED', spent_usd: 2 });
  expect(await scene.meter(id)).toMatchObject({ charged_uusd: 2 * USD, absorbed_uusd: 0 });
  expect((await scene.call('GET', '/users/me')).body.balance).toBe(0);
});
