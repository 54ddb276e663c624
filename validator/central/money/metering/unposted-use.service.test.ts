/** Tests that posted use and use that is not posted yet add up to what renters and providers read elsewhere. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { usdToMicro } from '#shared/api/money.ts';
import { testSigner } from '../../../../test/fakes/scenes/market-fixture.ts';
import {
  createMeteringScene,
  type MeteringScene,
} from '../../../../test/fakes/scenes/metering-scene.ts';
import { walletOf } from '../ledger/wallet.service.ts';

const MINUTE_MS = 60_000;
/** Price of a GPU in micro-dollars per hour, so that most divisions leave a remainder. */
const PRICE_UUSD = 1_234_567;

let scene: MeteringScene;
beforeEach(async () => {
  scene = await createMeteringScene({ signupCreditUusd: 100_000_000 });
  await scene.db.updateTable('executors').set({ price_uusd_per_gpu_hour: PRICE_UUSD }).execute();
});
afterEach(() => scene.close());

/** Runs the metering job every minute; it posts the first charge of a pod and then once an hour. */
async function minutes(count: number): Promise<void> {
  for (let minute = 0; minute < count; minute += 1) {
    await scene.live(MINUTE_MS);
    await scene.tick();
  }
}

/** Balance of the newest line of the journal, in micro-dollars. */
async function journalBalance(): Promise<number> {
  const { body } = await scene.call('GET', '/users/me/ledger?order=desc&limit=1');
  return usdToMicro(body.lines[0].balance_usd);
}

it("shows a renter the use since the last posting, which the journal's balance does not have", async () => {
  const id = await scene.running();
  await minutes(5);
  const { balance, unposted } = await scene.me();
  const { paid, granted } = await walletOf(scene.db, scene.account.id);
  expect(usdToMicro(unposted)).toBeGreaterThan(PRICE_UUSD / 30);
  expect(usdToMicro(balance) + usdToMicro(unposted)).toBe(paid + granted);
  // The request posts the use. Within a minute, a second one posts nothing.
  await journalBalance();
  expect((await scene.me()).unposted).toBe(0);
  await scene.live(30_000);
  const posted = await journalBalance();
  const later = await scene.me();
  expect(usdToMicro(later.unposted)).toBeGreaterThan(0);
  expect(usdToMicro(later.balance) + usdToMicro(later.unposted)).toBe(posted);
  const statement = (await scene.call('GET', `/pods/${id}/statement`)).body;
  expect(statement.unposted).toBe(later.unposted);
  await scene.remove(id);
  expect(await scene.me()).toMatchObject({ unposted: 0, balance: (await journalBalance()) / 1e6 });
});

it('shows a provider the use since the last posting, which the sums by node do not have', async () => {
  const first = await scene.running();
  await minutes(5);
  const second = await scene.running();
  await scene.live(20_000);
  const token = await scene.market.logIn();
  const {
    sum,
    unposted,
    data: nodes,
  } = (await scene.market.portal('GET', '/billing/nodes', { token })).body;
  const { data: rows } = (await scene.market.portal('GET', '/billing', { token })).body;
  expect(nodes).toHaveLength(1);
  expect(nodes[0]).toMatchObject(sum);
  // The second pod has no posted day yet.
  expect(rows.map(({ pod_id: id }: { pod_id: string }) => id)).toEqual([first]);
  const [row] = rows;
  expect(usdToMicro(row.net_usd) - usdToMicro(row.unposted.net_usd)).toBe(usdToMicro(sum.net_usd));
  expect(row.seconds - row.unposted.seconds).toBe(sum.seconds);
  const meters = [await scene.metered(first), await scene.metered(second)];
  const earned = meters.reduce((all, { provider_uusd: uusd }) => all + uusd, 0);
  expect(usdToMicro(sum.net_usd) + usdToMicro(unposted.net_usd)).toBe(earned);
  expect(usdToMicro(unposted.net_usd)).toBeGreaterThan(usdToMicro(row.unposted.net_usd));
  expect(unposted.seconds).toBe(row.unposted.seconds + 20);
  const stranger = await scene.market.logIn(testSigner(9));
  const nothing = (await scene.market.portal('GET', '/billing/nodes', { token: stranger })).body;
  expect(nothing.unposted).toEqual({ seconds: 0, gross_usd: 0, fee_usd: 0, net_usd: 0 });
});

const PERIODS = 10_250;
const PERIOD_MS = 10_007;
const PER_INSERT = 500;

/** Replaces the only period of a pod by many, whose last one is open, with the matching totals of its meter. */
async function divide(podId: string): Promise<void> {
  const { db } = scene;
  const first = await db
    .selectFrom('usage_segments')
    .selectAll()
    .where('pod_id', '=', podId)
    .executeTakeFirstOrThrow();
  const beginMs = scene.market.clock.now() - (PERIODS - 1) * PERIOD_MS;
  const periods = Array.from({ length: PERIODS }, (_, seq) => ({
    ...first,
    seq,
    prev_seq: seq === 0 ? null : seq - 1,
    from_ms: beginMs + seq * PERIOD_MS,
    to_ms: seq === PERIODS - 1 ? null : beginMs + (seq + 1) * PERIOD_MS,
    is_billable: seq % 2 === 0 ? (1 as const) : (0 as const),
  }));
  await db.deleteFrom('usage_segments').where('pod_id', '=', podId).execute();
  for (let from = 0; from < PERIODS; from += PER_INSERT) {
    await db
      .insertInto('usage_segments')
      .values(periods.slice(from, from + PER_INSERT))
      .execute();
  }
  const parts = BigInt(PRICE_UUSD) * BigInt((PERIODS / 2) * PERIOD_MS);
  await db
    .updateTable('usage_meters')
    .set({
      seq: PERIODS - 1,
      is_billable: 0,
      since_ms: scene.market.clock.now(),
      closed_uusd: Number(parts / 3_600_000n),
      closed_rest: Number(parts % 3_600_000n),
      charged_uusd: Number(parts / 3_600_000n),
      settled_to_ms: scene.market.clock.now(),
    })
    .where('pod_id', '=', podId)
    .execute();
}

it('sums all periods of a pod, and lists the oldest 10,000', async () => {
  const id = await scene.running();
  await minutes(1);
  await divide(id);
  const { total, lines, billed_seconds, period_count } = (
    await scene.call('GET', `/pods/${id}/statement`)
  ).body;
  const sum = lines.reduce(
    (all: number, { amount }: { amount: number }) => all + usdToMicro(amount),
    0,
  );
  expect([period_count, lines.length]).toEqual([PERIODS, 10_001]);
  expect(usdToMicro(total)).toBe(sum);
  expect(billed_seconds).toBe(Math.floor(((PERIODS / 2) * PERIOD_MS) / 1_000));
  expect(lines.at(-1)).toMatchObject({ state: 'further_periods', from: lines.at(-2).to });
  const { charged_uusd: charged } = await scene.meter(id);
  expect(sum).toBe(charged);
});
