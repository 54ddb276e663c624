import { afterEach, beforeEach, expect, it } from 'vitest';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { createPodScene, type PodScene } from '../../../../test/fakes/scenes/pod-scene.ts';
import { createCentral } from '../../app.ts';
import { plannedIdleStop, warningLeadMs } from './pod-idle.ts';

const MINUTE_MS = 60_000;

let scene: PodScene;
let id: string;
/** Time since which the agent reports no use; null while the pod is used. */
let unusedSinceMs: number | null;
/** Time of the agent's first sample. */
let measuredSinceMs: number;
beforeEach(async () => {
  scene = await createPodScene();
  id = await scene.running({ idle_shutdown_minutes: 10 });
  unusedSinceMs = scene.market.clock.now();
  measuredSinceMs = unusedSinceMs;
});
afterEach(() => scene.close());

/** Advances the clock while the agent reports every ten seconds. */
async function live(ms: number): Promise<void> {
  const { clock } = scene.market;
  for (let left = ms; left > 0; left -= 10_000) {
    await clock.advance(Math.min(left, 10_000));
    setPodMetrics();
    await scene.market.sync();
  }
}

const POINT = { age_ms: 0, gpu_percent: 0, gpu_memory_percent: 0 };

function setPodMetrics(): void {
  const points = 1 + (scene.market.clock.now() - measuredSinceMs) / 10_000;
  const history = Array.from({ length: Math.min(points, 60) }, () => POINT);
  const idle_ms = unusedSinceMs === null ? null : scene.market.clock.now() - unusedSinceMs;
  scene.host.podMetrics.set(id, {
    simulated: true,
    age_ms: 0,
    interval_seconds: 10,
    idle_ms,
    gpus: [],
    history,
    cpu: { used_cores: 0, limit_cores: 1 },
    memory: { used_bytes: 1, limit_bytes: 2 },
  });
}

const meter = () =>
  scene.market.ports.db.selectFrom('usage_meters').selectAll().executeTakeFirstOrThrow();
const details = async () =>
  (await scene.events(id))
    .filter(({ reason }: { reason: string | null }) => reason === 'idle_shutdown')
    .map(({ event }: { event: { detail: string } }) => event.detail);

it('warns, stops the pod at the computed instant, and restarts it when idle_shutdown_minutes is set again', async () => {
  const startMs = scene.market.clock.now();
  await live(5 * MINUTE_MS - 1_000);
  expect(await details()).toEqual([]);
  await live(11_000);
  expect(await details()).toEqual(['idle_warning']);
  await live(5 * MINUTE_MS - 10_000);
  await scene.market.central.meterPods();
  await live(20_000);
  expect(await scene.pod(id)).toMatchObject({ status: 'STOPPED', reason_code: 'idle_shutdown' });
  expect(await details()).toEqual(['idle_warning', 'stopped']);
  expect(scene.host.pods.get(id)).toMatchObject({ stopped: true });
  expect((await meter()).settled_to_ms).toBe(startMs + 10 * MINUTE_MS);
  const patched = await scene.call('PATCH', `/pods/${id}`, { idle_shutdown_minutes: null });
  expect(patched.body.status).toBe('PENDING');
  await live(20 * MINUTE_MS);
  expect((await scene.pod(id)).status).toBe('RUNNING');
});

it('deletes the pod after the grace period with the reason idle_shutdown', async () => {
  await live(10 * MINUTE_MS + 20_000);
  await scene.later(10 * MINUTE_MS);
  await scene.later();
  expect((await scene.pod(id)).details).toMatchObject({ reason_code: 'idle_shutdown' });
});

it('restarts the idle time with every use, and counts time without measurements as use', async () => {
  await live(9 * MINUTE_MS);
  unusedSinceMs = null;
  await live(10_000);
  unusedSinceMs = scene.market.clock.now();
  await live(9 * MINUTE_MS);
  // The agent has no measurements for a while.
  scene.host.podMetrics.delete(id);
  for (let poll = 0; poll < 20; poll += 1) await scene.later(10_000);
  expect((await scene.pod(id)).status).toBe('RUNNING');
  const { idle_stop_at: stopAt } = await scene.market.ports.db
    .selectFrom('pods')
    .select('idle_stop_at')
    .executeTakeFirstOrThrow();
  expect(stopAt).toBeNull();
  const due = await scene.market.ports.db
    .selectFrom('due_work')
    .select('kind')
    .where('kind', 'like', 'idle-%')
    .execute();
  expect(due).toEqual([]);
});

const mails = async () =>
  (await scene.market.call('GET', '/_local/outbox', { headers: { host: 'localhost' } })).body;

it('mails once per idle period, across restarts of the agent, and again after the pod was used', async () => {
  const stopsAt = naiveUtc(scene.market.clock.now() + 10 * MINUTE_MS).slice(11, 16);
  const removedAt = naiveUtc(scene.market.clock.now() + 20 * MINUTE_MS).slice(11, 16);
  await live(6 * MINUTE_MS);
  const [mail, ...more] = await mails();
  expect([mail.kind, more]).toEqual(['idle-shutdown', []]);
  for (const part of [` ${stopsAt} UTC`, ` ${removedAt} UTC`, `PATCH /pods/${id}`]) {
    expect(mail.text).toContain(part);
  }
  for (const _ of ['once', 'twice']) {
    // The agent restarts: at first it has no sample, then one sample, and then it reports the pod as unused.
    scene.host.podMetrics.delete(id);
    await scene.later(10_000);
    unusedSinceMs = null;
    measuredSinceMs = scene.market.clock.now();
    setPodMetrics();
    await scene.later(10_000);
    unusedSinceMs = scene.market.clock.now();
    await live(6 * MINUTE_MS);
  }
  expect((await details()).length).toBe(3);
  expect(await mails()).toHaveLength(1);
  unusedSinceMs = null;
  await live(10_000);
  unusedSinceMs = scene.market.clock.now();
  await live(6 * MINUTE_MS);
  expect(await mails()).toHaveLength(2);
  // The pod was used between two polls.
  await scene.market.clock.advance(20_000);
  unusedSinceMs = scene.market.clock.now();
  await live(6 * MINUTE_MS);
  expect(await mails()).toHaveLength(3);
});

it('counts no idle time before the request that set idle_shutdown_minutes', async () => {
  await scene.call('PATCH', `/pods/${id}`, { idle_shutdown_minutes: 60 });
  await live(20 * MINUTE_MS);
  await scene.call('PATCH', `/pods/${id}`, { idle_shutdown_minutes: 10 });
  await live(9 * MINUTE_MS);
  expect((await scene.pod(id)).status).toBe('RUNNING');
  await live(MINUTE_MS + 10_000);
  expect((await scene.pod(id)).status).toBe('STOPPED');
});

it('stops a pod once, charged up to the computed instant, if the central API was down at that time', async () => {
  const { market } = scene;
  const startMs = market.clock.now();
  await live(9 * MINUTE_MS);
  await market.clock.advance(5 * 3_600_000);
  const restarted = await createCentral(market.ports, {
    validators: [],
    signupCreditUusd: 0,
    verifyEmailAtSignup: true,
    trustedProxies: [],
  });
  setPodMetrics();
  await restarted.syncPods();
  await market.clock.advance(10_000);
  await restarted.syncPods();
  await restarted.syncPods();
  expect((await details()).filter((detail: string) => detail === 'stopped')).toHaveLength(1);
  expect((await meter()).settled_to_ms).toBe(startMs + 10 * MINUTE_MS);
  await restarted.close();
});

it('ignores missing and old measurements, and tolerates jitter in their ages', () => {
  const pod = { idle_from: 0, idle_stop_at: null, first_running_at: 0 };
  const at = { minutes: 1, nowMs: 1_000_000 };
  expect(plannedIdleStop(pod, { age_ms: null, idle_ms: 1 }, at)).toBeNull();
  expect(plannedIdleStop(pod, { age_ms: 0, idle_ms: null }, at)).toBeNull();
  expect(plannedIdleStop(pod, { age_ms: 60_000, idle_ms: 1 }, at)).toBeNull();
  const stop = { stopAtMs: 1_000_000 - 40_000 + 60_000, untilMs: 990_000 };
  const measured = { age_ms: 10_000, idle_ms: 30_000 };
  expect(plannedIdleStop(pod, measured, at)).toEqual(stop);
  const blurred = { ...pod, idle_stop_at: stop.stopAtMs - 15_000 };
  expect(plannedIdleStop(blurred, measured, at)?.stopAtMs).toBe(stop.stopAtMs - 15_000);
  expect(warningLeadMs(1)).toBe(30_000);
  expect(warningLeadMs(60)).toBe(5 * MINUTE_MS);
});
