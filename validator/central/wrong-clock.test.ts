/** The central API while the clock of its host is wrong, and when it is corrected. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { CheckResult } from '#shared/api/central/validator-routes.ts';
import { createGuardedClock, type GuardedClock } from '#shared/runtime/guarded-clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { createJumpingClock, type JumpingClock } from '../../test/fakes/jumping-clock.ts';
import {
  type BackupScene,
  createBackupScene,
} from '../../test/fakes/scenes/central-backup-scene.ts';

const SECOND_MS = 1_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const FORTY_DAYS_MS = 40 * DAY_MS;

const UNREACHABLE = {
  verdict: 'failed' as const,
  inventory: null,
  checks: [
    CheckResult.parse({
      check_id: 'reachability',
      passed: false,
      measured: 'no answer',
      required: 'an answer',
      message: 'The agent did not answer',
      remediation: 'Start it',
      reason_code: 'AGENT_UNREACHABLE',
    }),
  ],
};

let host: JumpingClock;
let guard: GuardedClock;
let scene: BackupScene;
beforeEach(async () => {
  host = createJumpingClock();
  guard = createGuardedClock({ clock: host, log: createLog({ name: 'test', level: 'silent' }) });
  scene = await createBackupScene({ clock: { ...guard.clock, advance: host.advance }, guard });
});
afterEach(() => scene.close());

/** Lets the time pass and runs all work of the central API. */
async function live(ms: number): Promise<void> {
  await scene.later(ms);
  await scene.market.central.meterPods();
  await scene.market.central.tendBackups();
}

/** Milliseconds of the pod that were charged, at the price of the scene. */
async function chargedMs(id: string): Promise<number> {
  const { since_ms: sinceMs, ...meter } = await scene.market.ports.db
    .selectFrom('usage_meters')
    .selectAll()
    .where('pod_id', '=', id)
    .executeTakeFirstOrThrow();
  const perMs = (meter.price_uusd_per_gpu_hour * meter.gpu_count) / HOUR_MS;
  return Math.round(meter.charged_uusd / perMs);
}

const segmentsOf = (id: string) =>
  scene.market.ports.db
    .selectFrom('usage_segments')
    .select(['is_billable', 'cause', 'from_ms', 'to_ms'])
    .where('pod_id', '=', id)
    .orderBy('seq')
    .execute();

async function operatorHeaders() {
  const operator = await scene.market.signUp();
  await scene.market.setOperator(operator);
  return operator.session;
}

it('deletes and expires nothing while a clock is 40 days ahead for 25 s, and continues afterwards', async () => {
  const backups = [await scene.backedUp('a'), await scene.backedUp('b')];
  const removed = await scene.running({ termination_hours: 1 });
  await live(60 * SECOND_MS);
  const beganMs = host.rightMs();
  const chargedBeforeMs = await chargedMs(scene.podId);
  host.setAhead(FORTY_DAYS_MS);
  scene.host.up = false;
  await scene.market.report(scene.node, UNREACHABLE);
  for (let second = 0; second < 25; second += 1) await live(SECOND_MS);
  expect(guard.status()).toMatchObject({ suspicion: 'jumped', timeMs: host.rightMs() });
  host.setAhead(0);
  scene.host.up = true;
  await live(SECOND_MS);
  for (const id of backups) expect((await scene.log(id)).status).toBe('COMPLETED');
  expect([scene.storage.pruned, scene.storage.removed]).toEqual([[], []]);
  expect((await scene.pod(scene.podId)).status).toBe('RUNNING');
  await live(60 * SECOND_MS);
  const passedMs = host.rightMs() - beganMs;
  expect((await chargedMs(scene.podId)) - chargedBeforeMs).toBeLessThanOrEqual(passedMs);
  expect(await segmentsOf(scene.podId)).toMatchObject([{ is_billable: 1, to_ms: null }]);
  // Schedules and expiries run again.
  for (let minutes = 0; minutes < 70; minutes += 10) await live(600 * SECOND_MS);
  expect((await scene.call('GET', `/pods/${removed}`)).body.status).not.toBe('RUNNING');
  await scene.tend(30 * DAY_MS);
  for (const id of backups) expect((await scene.log(id)).status).toBe('EXPIRED');
});

it('runs no schedule, expiry or verdict while the clock is suspect, however long', async () => {
  const backup = await scene.backedUp('a');
  const removed = await scene.running({ termination_hours: 1 });
  host.setAhead(-FORTY_DAYS_MS);
  scene.host.up = false;
  for (let hours = 0; hours < 3; hours += 1) await live(HOUR_MS);
  for (const id of [scene.podId, removed]) expect((await scene.pod(id)).status).toBe('RUNNING');
  await scene.tend(31 * DAY_MS);
  expect((await scene.log(backup)).status).toBe('COMPLETED');
  scene.host.up = true;
  host.setAhead(0);
  await live(SECOND_MS);
  await scene.tend();
  expect((await scene.log(backup)).status).toBe('EXPIRED');
  // A due removal waits once for contact with the node.
  await live(60 * SECOND_MS);
  expect((await scene.call('GET', `/pods/${removed}`)).body.status).not.toBe('RUNNING');
});

it('after an operator has confirmed the clock, charges no renter for the correction and retains data of expired backups', async () => {
  const backup = await scene.backedUp('a');
  await live(60 * SECOND_MS);
  host.setAhead(FORTY_DAYS_MS);
  await live(SECOND_MS);
  const headers = await operatorHeaders();
  const status = await scene.market.call('GET', '/operator/clock', { headers });
  expect(status.body).toMatchObject({ state: 'suspect', reason: 'jumped', peer_time: null });
  const unexplained = { headers, body: { reason: ' ' } };
  const refused = await scene.market.call('POST', '/operator/clock/confirm', unexplained);
  expect([refused.status, guard.isSuspect()]).toEqual([400, true]);
  const beforeMs = await chargedMs(scene.podId);
  const sent = { headers, body: { reason: 'the clock was set right' } };
  const confirmed = await scene.market.call('POST', '/operator/clock/confirm', sent);
  expect(confirmed.body).toMatchObject({ state: 'trusted', reason: null });
  for (let second = 0; second < 60; second += 10) await live(10 * SECOND_MS);
  expect((await chargedMs(scene.podId)) - beforeMs).toBeLessThanOrEqual(62 * SECOND_MS);
  const [first, skipped, last] = await segmentsOf(scene.podId);
  expect([first?.is_billable, skipped?.is_billable, last?.is_billable]).toEqual([1, 0, 1]);
  expect((skipped?.to_ms ?? 0) - (skipped?.from_ms ?? 0)).toBeGreaterThan(FORTY_DAYS_MS - HOUR_MS);
  expect((await scene.pod(scene.podId)).status).toBe('RUNNING');
  expect((await scene.log(backup)).status).toBe('EXPIRED');
  await scene.tend(6 * DAY_MS);
  expect([scene.storage.pruned, scene.storage.removed]).toEqual([[], []]);
  // The session expired with the correction.
  const later = { headers: await operatorHeaders() };
  const { body: entries } = await scene.market.call('GET', '/operator/audit', later);
  const entry = { action: 'clock.confirm', reason: 'the clock was set right' };
  expect(entries).toContainEqual(expect.objectContaining(entry));
});
