/** Charges while a node is silent, and the loss of its pod. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { CheckResult } from '#shared/api/central/validator-routes.ts';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { createTestMarket } from '../../../../test/fakes/scenes/market-fixture.ts';
import {
  createMeteringScene,
  type MeteringScene,
} from '../../../../test/fakes/scenes/metering-scene.ts';
import { CONTACT_WAIT_MS } from '../../market/pods/pod-contact.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

const FAILED_CHECK = {
  check_id: 'reachable',
  passed: false,
  measured: 'no answer',
  required: 'an answer',
  message: 'The agent did not answer',
  remediation: 'Start it',
};

let scene: MeteringScene;
beforeEach(async () => {
  scene = await createMeteringScene();
});
afterEach(() => scene.close());

const failedFor = (reason_code: string) => ({
  verdict: 'failed' as const,
  inventory: null,
  checks: [CheckResult.parse({ ...FAILED_CHECK, reason_code })],
});

/** Reports a validator's failed check of the node. */
const verdict = (reason_code: string) => scene.market.report(scene.node, failedFor(reason_code));

it('charges nothing after the last contact, and nothing twice when a silent agent answers again', async () => {
  const id = await scene.running();
  await scene.live(MINUTE_MS);
  scene.host.up = false;
  await scene.live(5 * MINUTE_MS);
  await scene.tick();
  expect((await scene.meter(id)).charged_uusd).toBe(MINUTE_MS);
  scene.host.up = true;
  await scene.live(MINUTE_MS);
  const [first, lost, back] = await scene.segments(id);
  expect(first).toEqual([0, MINUTE_MS, 'running']);
  expect(lost?.[2]).toBe('contact_lost');
  expect(back?.slice(1)).toEqual([null, 'running']);
});

it('charges up to the last contact if a pod ended while its state was unknown', async () => {
  const ids = [await scene.running({ termination_hours: 1 }), await scene.running()];
  await scene.live(MINUTE_MS);
  const lastContactMs = scene.market.clock.now();
  scene.host.up = false;
  // The central API was down as well.
  await scene.market.clock.advance(2 * HOUR_MS);
  for (const id of ids) await scene.remove(id);
  await scene.later(CONTACT_WAIT_MS);
  for (const id of ids) {
    const { settled_to_ms: settledMs, ended_at: endedMs } = await scene.meter(id);
    expect([settledMs, endedMs]).toEqual([lastContactMs, lastContactMs]);
  }
});

it('defers a removal once to contact the node, and charges confirmed time if the node stays silent', async () => {
  const id = await scene.running({ termination_hours: 1 });
  await scene.live(MINUTE_MS);
  scene.host.up = false;
  await scene.market.clock.advance(2 * HOUR_MS);
  await scene.market.sync();
  await scene.later(CONTACT_WAIT_MS);
  expect((await scene.db.selectFrom('pods').select('state').executeTakeFirstOrThrow()).state).toBe(
    'deleting',
  );
  expect((await scene.meter(id)).charged_uusd).toBe(MINUTE_MS);
});

it('refunds charges since the last contact with a healthy pod when the provider breaks the pod', async () => {
  const id = await scene.running();
  await scene.live(MINUTE_MS);
  // The agent reports an unhealthy pod, then stops answering.
  scene.host.change(id, { phase: 'backoff' });
  await scene.live(MINUTE_MS);
  await scene.tick();
  expect((await scene.meter(id)).charged_uusd).toBe(2 * MINUTE_MS);
  scene.host.up = false;
  await scene.later(MINUTE_MS);
  await scene.later(2 * HOUR_MS - MINUTE_MS - 1);
  expect((await scene.pod(id)).status).toBe('RUNNING');
  await scene.later(31_000);
  expect(await scene.pod(id)).toMatchObject({ status: 'BROKEN', reason_code: 'provider_fault' });
  const { refunded_uusd } = await scene.meter(id);
  expect(refunded_uusd).toBe(MINUTE_MS);
  const { provider, 'platform:fee': fee, 'clearing:refund': clearing } = await scene.ledger();
  expect({ provider, fee, clearing }).toEqual({ provider: 57_000, fee: 3_000, clearing: 0 });
  expect((await scene.me()).balance).toBe(9.94);
});

it('marks a rebooting pod as broken and fails a creation when their node is lost', async () => {
  const id = await scene.running();
  await scene.live(MINUTE_MS);
  await scene.tick();
  scene.host.arrives = 'pulling';
  const created = await scene.rentOne();
  await scene.later(1_000);
  await scene.post(id, 'reboot', {});
  scene.host.up = false;
  await scene.later(MINUTE_MS);
  expect(await scene.pod(id)).toMatchObject({ status: 'REBOOT_PENDING', phase: 'unreachable' });
  await scene.later(8 * MINUTE_MS);
  expect((await scene.pod(created)).status).toBe('PENDING');
  // The limit of a launch, plus the time for which its end waits for contact.
  await scene.later(MINUTE_MS);
  await scene.later(MINUTE_MS);
  const failed = await scene.call('GET', `/pods/${created}`);
  expect(failed.body).toMatchObject({ status: 'CREATION_FAILED', reason_code: 'provider_fault' });
  await scene.later(2 * HOUR_MS - 13 * MINUTE_MS);
  expect((await scene.pod(id)).status).toBe('REBOOT_PENDING');
  await scene.later(3 * MINUTE_MS);
  expect(await scene.pod(id)).toMatchObject({ status: 'BROKEN', reason_code: 'provider_fault' });
  expect((await scene.me()).held).toBe(0);
  // The agent removes both pods when it answers again.
  await scene.remove(id);
  scene.host.up = true;
  await scene.later(MINUTE_MS);
  expect(await scene.freeGpus()).toBe(2);
});

it("marks a pod as broken at once when a validator's verdict during the silence confirms the loss", async () => {
  const id = await scene.running();
  await scene.live(MINUTE_MS);
  scene.host.change(id, { phase: 'backoff' });
  await scene.live(MINUTE_MS);
  await scene.tick();
  scene.host.up = false;
  await verdict('AGENT_UNREACHABLE');
  await scene.later(2 * MINUTE_MS);
  await scene.later(MINUTE_MS);
  expect(await scene.pod(id)).toMatchObject({ status: 'RUNNING', phase: 'unreachable' });
  await verdict('TLS_PIN_MISMATCH');
  await scene.later(0);
  expect((await scene.pod(id)).status).toBe('RUNNING');
  await verdict('AGENT_UNREACHABLE');
  // The verdict takes effect at once, without waiting for the backoff of the sync with the silent agent.
  await scene.later(0);
  expect(await scene.pod(id)).toMatchObject({ status: 'BROKEN', reason_code: 'provider_fault' });
  expect((await scene.meter(id)).refunded_uusd).toBe(MINUTE_MS);
});

it('charges nothing during announced maintenance, and marks no pod as broken before the maintenance ends', async () => {
  const { market } = scene;
  const token = await market.logIn();
  const startMs = market.clock.now() + 24 * HOUR_MS;
  const body = { starting_at: `${naiveUtc(startMs)}Z`, period_in_minute: 30 };
  const path = `/executors/${scene.node.id}/notice-period`;
  expect((await market.portal('POST', path, { token, body })).status).toBe(200);
  await market.clock.advance(24 * HOUR_MS - 2 * MINUTE_MS);
  const id = await scene.running();
  await scene.live(2 * MINUTE_MS);
  scene.host.change(id, { phase: 'backoff' });
  await scene.live(MINUTE_MS);
  // Time in which the node answers during maintenance is charged.
  const lostMs = startMs + MINUTE_MS - scene.startMs();
  scene.host.up = false;
  await scene.live(3 * MINUTE_MS);
  await verdict('AGENT_UNREACHABLE');
  const endMs = startMs + 30 * MINUTE_MS;
  await scene.later(endMs - 1 - market.clock.now());
  await verdict('AGENT_UNREACHABLE');
  await scene.later(0);
  expect(await scene.pod(id)).toMatchObject({ status: 'RUNNING', phase: 'unreachable' });
  expect(await scene.segments(id)).toEqual([
    [0, lostMs, 'running'],
    [lostMs, null, 'maintenance'],
  ]);
  expect((await scene.meter(id)).charged_uusd).toBe(lostMs);
  await market.clock.advance(1);
  await verdict('AGENT_UNREACHABLE');
  await scene.later(0);
  expect(await scene.pod(id)).toMatchObject({ status: 'BROKEN', reason_code: 'provider_fault' });
  expect((await scene.meter(id)).refunded_uusd).toBe(MINUTE_MS);
});

it('returns a broken pod to running when its agent reports the pod again, and charges from then on', async () => {
  const id = await scene.running();
  await scene.live(MINUTE_MS);
  scene.host.change(id, { phase: 'backoff' });
  await scene.live(MINUTE_MS);
  await scene.tick();
  const isBrokenAgain = async () => {
    scene.host.up = false;
    await scene.later(2 * MINUTE_MS);
    await verdict('AGENT_UNREACHABLE');
    await scene.later(0);
    return (await scene.pod(id)).status === 'BROKEN';
  };
  expect(await isBrokenAgain()).toBe(true);
  const { charged_uusd: before, refunded_uusd: refunded } = await scene.meter(id);
  expect(refunded).toBe(MINUTE_MS);
  scene.host.change(id, { phase: 'running' });
  scene.host.up = true;
  await scene.later(MINUTE_MS);
  expect(await scene.pod(id)).toMatchObject({ status: 'RUNNING', reason_code: null });
  expect((await scene.events(id)).at(-1)).toMatchObject({ to_status: 'RUNNING' });
  await scene.live(MINUTE_MS);
  await scene.tick();
  const meter = await scene.metered(id);
  expect([meter.charged_uusd - before, meter.refunded_uusd]).toEqual([MINUTE_MS, refunded]);
  // A pod has at most one refund.
  scene.host.change(id, { phase: 'backoff' });
  await scene.live(MINUTE_MS);
  expect(await isBrokenAgain()).toBe(true);
  expect((await scene.meter(id)).refunded_uusd).toBe(refunded);
});

it('leaves a broken pod broken when its agent returns without it', async () => {
  const id = await scene.running();
  scene.host.up = false;
  await scene.later(2 * MINUTE_MS);
  await scene.later(2 * HOUR_MS);
  scene.host.pods.clear();
  scene.host.up = true;
  await scene.later(MINUTE_MS);
  expect((await scene.pod(id)).status).toBe('BROKEN');
  expect(scene.host.calls.filter((call) => call === `put ${id}`)).toHaveLength(1);
  await scene.remove(id);
  await scene.later(1_000);
  expect(await scene.freeGpus()).toBe(2);
});

it('does not count the time of a gateway outage against a node', async () => {
  const id = await scene.running();
  await scene.live(MINUTE_MS);
  Object.assign(scene.host, { up: false, gatewayUp: false });
  await scene.later(MINUTE_MS);
  await scene.later(3 * HOUR_MS);
  expect(await scene.pod(id)).toMatchObject({ status: 'RUNNING', phase: 'unreachable' });
  // The gateway answers again before the agent does.
  scene.host.gatewayUp = true;
  await verdict('AGENT_UNREACHABLE');
  await scene.later(30_000);
  expect((await scene.pod(id)).status).toBe('RUNNING');
  await scene.later(2 * HOUR_MS);
  expect((await scene.pod(id)).status).toBe('BROKEN');
});

it('does not count time in which the central API was down against a node', async () => {
  const id = await scene.running();
  await scene.live(MINUTE_MS);
  scene.host.up = false;
  await scene.market.central.close();
  await scene.market.clock.advance(3 * HOUR_MS);
  const { db } = scene.market.ports;
  const { agents, clock } = scene.market;
  const second = await createTestMarket({ db, agents, clock });
  const laterOn = async (ms: number) => {
    await clock.advance(ms);
    await second.sync();
    return db.selectFrom('pods').select(['state']).where('id', '=', id).executeTakeFirstOrThrow();
  };
  expect(await laterOn(0)).toEqual({ state: 'unknown' });
  await second.report(scene.node, failedFor('AGENT_UNREACHABLE'));
  expect(await laterOn(MINUTE_MS)).toEqual({ state: 'unknown' });
  expect(await laterOn(2 * HOUR_MS - MINUTE_MS - 1)).toEqual({ state: 'unknown' });
  const counted = await db.selectFrom('node_days').select('interruptions').execute();
  expect(counted.filter(({ interruptions }) => interruptions > 0)).toEqual([]);
  expect(await laterOn(MINUTE_MS)).toEqual({ state: 'broken' });
  await second.central.close();
});

it('refunds at most one day of charges', async () => {
  await scene.close();
  scene = await createMeteringScene({ signupCreditUusd: 1_000_000_000 });
  const id = await scene.running();
  scene.host.change(id, { phase: 'backoff' });
  for (let hours = 0; hours < 30; hours += 1) await scene.later(HOUR_MS);
  await scene.tick();
  const lastContactMs = scene.market.clock.now();
  expect((await scene.meter(id)).charged_uusd).toBe(30 * HOUR_MS);
  scene.host.up = false;
  await scene.later(MINUTE_MS);
  await scene.later(2 * HOUR_MS);
  expect((await scene.pod(id)).status).toBe('BROKEN');
  const refund = await scene.db.selectFrom('usage_refunds').selectAll().executeTakeFirstOrThrow();
  expect(refund.to_ms - refund.from_ms).toBe(24 * HOUR_MS);
  expect(refund.amount_uusd).toBe(lastContactMs - refund.from_ms);
  expect((await scene.meter(id)).refunded_uusd).toBe(refund.amount_uusd);
  expect(await scene.me()).toMatchObject({
    balance: (1_000_000_000 - 30 * HOUR_MS + refund.amount_uusd) / 1_000_000,
  });
});

it("shows a refund as an event, a statement line and a deduction from the provider's day", async () => {
  const id = await scene.running();
  scene.host.change(id, { phase: 'backoff' });
  await scene.live(MINUTE_MS);
  await scene.tick();
  scene.host.up = false;
  await scene.later(2 * MINUTE_MS);
  await verdict('AGENT_UNREACHABLE');
  await scene.later(0);
  expect(await scene.pod(id)).toMatchObject({ status: 'BROKEN', spent_usd: 0 });
  const statement = (await scene.call('GET', `/pods/${id}/statement`)).body;
  expect(statement).toMatchObject({ total: 0, refunded: 0.06 });
  expect(statement.lines.at(-1)).toMatchObject({ cause: 'provider_fault', amount: -0.06 });
  const amounts = statement.lines.map(({ amount }: { amount: number }) => amount);
  expect(amounts.reduce((sum: number, amount: number) => sum + amount, 0)).toBe(0);
  const told = (await scene.events(id)).find(
    ({ detail }: { detail: string | null }) => detail === 'refund',
  );
  expect(told).toMatchObject({ reason: 'provider_fault', event: { amount_usd: 0.06 } });
  const token = await scene.market.logIn();
  const billing = (await scene.market.portal('GET', '/billing', { token })).body.data;
  expect(billing).toMatchObject([{ pod_id: id, gross_usd: 0, net_usd: 0, status: 'reversed' }]);
  expect((await scene.me()).balance).toBe(10);
});
