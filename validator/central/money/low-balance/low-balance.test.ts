import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  createTestCentral,
  type TestAccount,
  type TestCentral,
} from '../../../../test/fakes/scenes/central-fixture.ts';
import { createPodScene } from '../../../../test/fakes/scenes/pod-scene.ts';
import { createMails } from '../../delivery/mail/mail.service.ts';
import { createLowBalance, rearmLowBalance } from './low-balance.service.ts';

const USD = 1_000_000;
const HOUR_MS = 3_600_000;
const DEFAULTS = { threshold_usd: 5, runway_minutes: 120 };

let central: TestCentral;
let account: TestAccount;
beforeAll(async () => {
  central = await createTestCentral();
  account = await central.signUp();
});
afterAll(() => central.close());

const PATH = '/users/me/low-balance-threshold';
const read = () => central.call('GET', PATH, { headers: account.key });
const put = (body: object) => central.call('PUT', PATH, { headers: account.key, body });
const mails = () =>
  central.ports.db
    .selectFrom('mails')
    .select('kind')
    .where('account_id', '=', account.id)
    .execute();
const lowEvents = async () =>
  (await central.call('GET', '/users/me/events', { headers: account.key })).body.filter(
    (event: { event_type: string }) => event.event_type === 'billing',
  );

/** Runs the check that follows a spend. */
async function spent(availableUsd: number, burnUsd = 0): Promise<void> {
  const { db, clock, random, secret } = central.ports;
  const written = createMails({ db, clock, random, secret, isSent: false });
  const lowBalance = createLowBalance({ db, clock, random, mails: written });
  const runsOutAtMs = burnUsd === 0 ? null : clock.now() + (availableUsd / burnUsd) * HOUR_MS;
  const funds = { available: availableUsd * USD, burnPerHour: burnUsd * USD, runsOutAtMs };
  await db.transaction().execute((tx) => lowBalance.afterSpend(tx, new Map([[account.id, funds]])));
}

it('returns the defaults without creating a row', async () => {
  expect((await read()).body).toEqual({ ...DEFAULTS, defaults: DEFAULTS, overridden: [] });
  expect(await central.ports.db.selectFrom('low_balance_thresholds').selectAll().execute()).toEqual(
    [],
  );
});

it('merges settings with the defaults; null restores a default', async () => {
  const set = await put({ threshold_usd: 2.5 });
  expect([set.status, set.body]).toMatchObject([
    200,
    { user_id: account.id, threshold_usd: 2.5, runway_minutes: null },
  ]);
  expect((await read()).body).toEqual({
    threshold_usd: 2.5,
    runway_minutes: 120,
    defaults: DEFAULTS,
    overridden: ['threshold_usd'],
  });
  expect((await put({ runway_minutes: 30 })).body).toMatchObject({
    id: set.body.id,
    threshold_usd: 2.5,
    runway_minutes: 30,
  });
  expect((await put({ threshold_usd: null })).body).toMatchObject({
    threshold_usd: null,
    runway_minutes: 30,
  });
  expect((await read()).body).toMatchObject({
    threshold_usd: 5,
    runway_minutes: 30,
    overridden: ['runway_minutes'],
  });
  await put({ runway_minutes: null });
});

it.each([
  [{ threshold_usd: -1 }],
  [{ threshold_usd: 0.0000001 }],
  [{ threshold_usd: 1e300 }],
  [{ runway_minutes: 1.5 }],
  [{ runway_minutes: -1 }],
])('rejects %j', async (body) => {
  expect((await put(body)).status).toBe(422);
});

it('notifies once by event and mail when a threshold is crossed, with the remaining time', async () => {
  for (const usd of [6, 5.2, 5, 4.5]) await spent(usd, 1.5);
  expect(await mails()).toEqual([{ kind: 'low-balance' }]);
  expect(await lowEvents()).toMatchObject([
    {
      sub_event_type: 'billing.status',
      detail: 'balance low: $5.00, 3 h 20 min left',
      event: { available_usd: 5, burn_per_hour_usd: 1.5 },
    },
  ]);
  const { body } = await central.call('GET', '/_local/outbox', {
    headers: { host: 'localhost' },
  });
  expect(body[0]).toMatchObject({
    subject: 'Your balance is low: 3 h 20 min left',
    text: expect.stringMatching(/has \$5\.00 left[\s\S]*PUT \/users\/me\/auto-top-up/),
    html: expect.stringContaining('<p>Your account at Podwright has $5.00 left.</p>'),
  });
});

it('notifies again after a top-up, without a mail if mails are switched off', async () => {
  await central.ports.db.transaction().execute((tx) => rearmLowBalance(tx, account.id));
  await central.call('PUT', '/users/me/notification', {
    headers: account.key,
    body: { low_balance: false },
  });
  await spent(4, 4);
  await spent(3.9, 4);
  expect(await lowEvents()).toHaveLength(2);
  expect(await mails()).toHaveLength(1);
});

it('counts holds of running pods as money to spend, like the runway of GET /users/me', async () => {
  const scene = await createPodScene();
  try {
    const { db } = scene.market.ports;
    // The balance pays for 150 minutes, of which the pod's hold covers 15.
    await db
      .updateTable('executors')
      .set({ price_uusd_per_gpu_hour: 4 * USD })
      .execute();
    await scene.running();
    const left = async () =>
      (await scene.call('GET', '/users/me/events')).body
        .filter((event: { event_type: string }) => event.event_type === 'billing')
        .map(({ detail }: { detail: string }) => detail);
    await scene.call('PUT', PATH, { runway_minutes: 149 });
    await scene.later(60_000 - 1);
    await scene.market.central.meterPods();
    expect(await left()).toEqual([]);
    await scene.later(1);
    await scene.market.central.meterPods();
    expect(await left()).toEqual(['balance low: $9.93, 2 h 29 min left']);
  } finally {
    await scene.close();
  }
});

it("notifies when a rental's hold crosses the threshold, before the pod runs", async () => {
  const scene = await createPodScene();
  try {
    await scene.call('PUT', PATH, { threshold_usd: 9.9999 });
    await scene.rentOne();
    const [event] = (await scene.call('GET', '/users/me/events')).body.filter(
      ({ event_type: type }: { event_type: string }) => type === 'billing',
    );
    expect(event.detail).toMatch(/^balance low: \$9\.\d\d$/);
  } finally {
    await scene.close();
  }
});
