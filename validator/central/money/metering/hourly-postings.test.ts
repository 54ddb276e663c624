/**
 * Tests that posting by the hour changes no amount: neither what the renter, the provider and the validators read
 * between two postings, nor the totals after them, also if the central API restarts in between.
 */
import { afterEach, expect, it } from 'vitest';
import type { TestMarketOverrides } from '../../../../test/fakes/scenes/market-fixture.ts';
import {
  createMeteringScene,
  type MeteringScene,
} from '../../../../test/fakes/scenes/metering-scene.ts';
import { payIn } from '../../../../test/fakes/scenes/wallet.ts';
import { auditLedger } from '../ledger/audit.service.ts';
import { walletOf } from '../ledger/wallet.service.ts';
import { createMeteringJob } from './metering.job.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const CONTACT_MS = 10_000;
const DAY_MS = 24 * HOUR_MS;
/** The scene's clock starts at 08:00 UTC. */
const TO_MIDNIGHT_MS = 16 * HOUR_MS;
/** Price of a GPU in micro-dollars per hour, so that most divisions leave a remainder. */
const PRICE_UUSD = 1_234_567;
const CREDIT_UUSD = 100_000_000;
/** Posts with every tick that finds new use. */
const EVERY_TICK: TestMarketOverrides = { meterPostingMs: 1, signupCreditUusd: CREDIT_UUSD };
const BY_THE_HOUR: TestMarketOverrides = { signupCreditUusd: CREDIT_UUSD };

const scenes: MeteringScene[] = [];
afterEach(async () => {
  for (const scene of scenes.splice(0)) await scene.close();
});

async function open(overrides: TestMarketOverrides): Promise<MeteringScene> {
  const scene = await createMeteringScene(overrides);
  await scene.db.updateTable('executors').set({ price_uusd_per_gpu_hour: PRICE_UUSD }).execute();
  scenes.push(scene);
  return scene;
}

async function createKey(scene: MeteringScene): Promise<string> {
  const body = { name: 'limited', daily_budget_usd: 50, max_budget_usd: 90 };
  const { session: headers } = scene.account;
  return (await scene.market.call('POST', '/keys', { headers, body })).body.id;
}

/** Everything that a reader of the account, the node or the provider sees about the use of a pod. */
async function readingsOf(scene: MeteringScene, id: string, keyId: string, token: string) {
  const { session: headers } = scene.account;
  const key = (await scene.market.call('GET', `/keys/${keyId}`, { headers })).body;
  const { balance, held, available, burn_per_hour, runs_out_at } = await scene.me();
  const listed = (await scene.call('GET', '/pods')).body[0];
  const billing = (await scene.market.portal('GET', '/billing', { token })).body.data;
  const nodes = (await scene.market.asValidator('/executors', {})).body;
  return {
    me: { balance, held, available, burn_per_hour, runs_out_at },
    spent: [(await scene.pod(id)).spent_usd, listed?.spent_usd],
    key: [key.spent_today_usd, key.spent_total_usd],
    billing: billing.map((row: Record<string, unknown>) =>
      ['period_start', 'period_end', 'seconds', 'gross_usd', 'net_usd'].map((name) => row[name]),
    ),
    fees: nodes[0].paid_fees_uusd,
  };
}

const tickCount = async ({ db }: MeteringScene) =>
  (await db.selectFrom('billing_ticks').select('pod_id').execute()).length;

it('shows the same amounts between two postings as a posting with every tick', async () => {
  const pair = [await open(EVERY_TICK), await open(BY_THE_HOUR)] as const;
  const pods: { id: string; keyId: string; token: string }[] = [];
  for (const scene of pair) {
    const keyId = await createKey(scene);
    pods.push({ id: await scene.running(), keyId, token: await scene.market.logIn() });
    await scene.db.updateTable('pods').set({ created_by_api_key_id: keyId }).execute();
  }
  for (let minute = 1; minute <= 90; minute += 1) {
    const seen = [];
    for (const [index, scene] of pair.entries()) {
      await scene.live(MINUTE_MS);
      await scene.tick();
      const { id = '', keyId = '', token = '' } = pods[index] ?? {};
      seen.push(await readingsOf(scene, id, keyId, token));
    }
    expect([minute, seen[1]]).toEqual([minute, seen[0]]);
  }
  const [each, hourly] = [await tickCount(pair[0]), await tickCount(pair[1])];
  expect(each).toBe(90);
  expect(hourly).toBeLessThanOrEqual(3);
});

/** Starts a second metering job on the same database, as a restarted central API does. */
async function tickAfterRestart(scene: MeteringScene, postingMs: number): Promise<void> {
  const { db, clock, random } = scene.market.ports;
  const { log } = scene.market.ports;
  const settings = { tickMs: MINUTE_MS, postingMs, afterSpend: async () => undefined };
  await createMeteringJob({ db, clock, random, log, ...settings }).runOnce();
}

/** Runs the same life of a pod, with a reboot, a lost contact and midnight, and returns all its amounts. */
async function lifeWith(tickMs: number, postingMs: number, restarts: boolean) {
  const scene = await open({ ...BY_THE_HOUR, meterPostingMs: postingMs });
  await scene.market.clock.advance(TO_MIDNIGHT_MS - 40 * MINUTE_MS);
  await scene.market.sync();
  const id = await scene.running();
  let [elapsedMs, ticks] = [0, 0];
  /** A contact every ten seconds, whatever the interval of the ticks. */
  const live = async (ms: number) => {
    const stepMs = Math.min(tickMs, CONTACT_MS);
    for (let left = ms; left > 0; left -= stepMs) {
      await scene.market.clock.advance(stepMs);
      elapsedMs += stepMs;
      if (elapsedMs % CONTACT_MS === 0) await scene.market.sync();
      if (elapsedMs % tickMs !== 0) continue;
      ticks += 1;
      await (restarts && ticks % 3 === 0 ? tickAfterRestart(scene, postingMs) : scene.tick());
    }
  };
  await live(7 * MINUTE_MS);
  await scene.post(id, 'reboot', {});
  await scene.later(3_000);
  scene.host.change(id, { phase: 'running', reboots_done: 1 });
  await scene.later(4_321);
  await live(20 * MINUTE_MS);
  scene.host.up = false;
  await live(3 * MINUTE_MS);
  scene.host.up = true;
  await live(40 * MINUTE_MS);
  await scene.remove(id);
  await scene.live(2 * MINUTE_MS);
  const { tick_seq: _, ...meter } = await scene.meter(id);
  const days = await scene.db
    .selectFrom('billing_periods')
    .select(['day_ms', 'from_ms', 'to_ms', 'billed_ms', 'gross_uusd', 'net_uusd'])
    .orderBy('day_ms')
    .execute();
  const { findings } = await scene.db.transaction().execute(auditLedger);
  const known = { pod_id: '', account_id: '', provider_id: '', executor_id: '' };
  const statement = (await scene.call('GET', `/pods/${id}/statement`)).body;
  return {
    meter: { ...meter, ...known },
    days,
    findings,
    ledger: await scene.ledger(),
    statement: { ...statement, pod_id: '' },
    segments: await scene.segments(id),
  };
}

it('results in the same totals and days for every interval of ticks and postings, also with restarts (I6)', async () => {
  const wanted = await lifeWith(MINUTE_MS, 1, false);
  expect(wanted.findings).toEqual([]);
  expect(wanted.days).toHaveLength(2);
  expect(wanted.days[0]?.to_ms).toBe(wanted.days[1]?.day_ms);
  for (const [tickMs, postingMs, restarts] of [
    [1_000, 1, false],
    [HOUR_MS, 1, false],
    [MINUTE_MS, HOUR_MS, false],
    [MINUTE_MS, HOUR_MS, true],
    [HOUR_MS, DAY_MS, true],
  ] as const) {
    expect([tickMs, postingMs, await lifeWith(tickMs, postingMs, restarts)]).toEqual([
      tickMs,
      postingMs,
      wanted,
    ]);
  }
}, 120_000);

it('posts when the hour of the account ends, when a limit is near, and when the journal or a statement is read', async () => {
  const scene = await open({ signupCreditUusd: 3 * PRICE_UUSD });
  const id = await scene.running();
  await scene.live(MINUTE_MS);
  await scene.tick();
  expect(await tickCount(scene)).toBe(1);
  // The hour of the account begins at a hash of its id.
  let minute = 1;
  for (; (await tickCount(scene)) === 1 && minute <= 60; minute += 1) {
    await scene.live(MINUTE_MS);
    await scene.tick();
  }
  expect(await tickCount(scene)).toBe(2);
  await scene.live(5 * MINUTE_MS);
  await scene.tick();
  expect(await tickCount(scene)).toBe(2);
  const journal = async () => (await scene.call('GET', '/users/me/ledger?limit=1000')).body.lines;
  expect((await journal()).at(-1).balance_usd).toBe((await scene.me()).balance);
  expect(await tickCount(scene)).toBe(3);
  // A second request within a minute posts nothing.
  await scene.live(30_000);
  await journal();
  expect(await tickCount(scene)).toBe(3);
  await scene.live(30_000);
  await scene.call('GET', `/pods/${id}/statement`);
  expect(await tickCount(scene)).toBe(4);
  // The money lasts for three hours; the last two minutes are posted with every tick.
  for (minute += 7; minute <= 177; minute += 1) {
    await scene.live(MINUTE_MS);
    await scene.tick();
  }
  const before = await tickCount(scene);
  expect(before).toBeGreaterThanOrEqual(5);
  expect(before).toBeLessThanOrEqual(7);
  await scene.live(MINUTE_MS);
  await scene.tick();
  await scene.live(MINUTE_MS);
  await scene.tick();
  expect(await tickCount(scene)).toBe(before + 2);
});

it('never lets a transfer or a rental spend money that is metered and not posted', async () => {
  const scene = await open({ signupCreditUusd: 0 });

  await payIn(scene.db, scene.account.id, 2 * PRICE_UUSD);
  const friend = await scene.market.signUp();
  const id = await scene.running();
  for (let minute = 0; minute < 50; minute += 1) {
    await scene.live(MINUTE_MS);
    await scene.tick();
  }
  const { charged_uusd: posted } = await scene.meter(id);
  const spent = Math.floor((PRICE_UUSD * 50) / 60);
  expect(posted).toBeLessThan(spent);
  const reserved = Math.ceil(PRICE_UUSD / 4);
  const send = (uusd: number) =>
    scene.call('POST', '/users/me/transfer-credits', {
      recipient_email: friend.email,
      amount: uusd / 1_000_000,
    });
  const free = 2 * PRICE_UUSD - spent - reserved;
  expect((await send(free + 1)).body.error.code).toBe('insufficient_balance');
  expect((await send(free - 1)).status).toBe(200);
  expect((await scene.meter(id)).charged_uusd).toBe(spent);
  const { available } = await walletOf(scene.db, scene.account.id);
  expect((await scene.me()).available).toBe(available / 1_000_000);
});
