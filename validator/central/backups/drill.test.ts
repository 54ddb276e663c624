/** Requested and scheduled restore drills. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import {
  type BackupScene,
  createBackupScene,
} from '../../../test/fakes/scenes/central-backup-scene.ts';

const NOWHERE = '00000000-0000-4000-8000-000000000000';
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const EVERY_HOURS = 24;

let scene: BackupScene;
beforeEach(async () => {
  scene = await createBackupScene({ backupDrillHours: EVERY_HOURS });
});
afterEach(() => scene.close());

const details = async () => {
  const events: { sub_event_type: string; detail: string }[] = await scene.events(scene.podId);
  return events
    .filter(({ sub_event_type: type }) => type === 'backup.status')
    .map(({ detail }) => detail);
};

describe('a requested drill', () => {
  let id: string;
  beforeEach(async () => {
    id = await scene.backedUp();
  });

  it('runs on the node of the pod and is recorded in the log of the backup', async () => {
    const requested = await scene.verify(id);
    expect(requested).toMatchObject({
      status: 200,
      body: { id, status: 'COMPLETED', verify_status: 'PENDING' },
    });
    await scene.market.sync();
    const drill = scene.drill();
    expect(scene.operations.requests.get(drill)).toEqual({
      operation_id: drill,
      renter: { id: expect.any(String), is_present: true },
      snapshot_id: 'a'.repeat(64),
      sample: { seed: drill, max_files: 50, max_bytes: 256 * 1024 * 1024 },
      repository: scene.operations.requests.get(id)?.repository,
    });
    expect(await scene.log(id)).toMatchObject({ verify_status: 'IN_PROGRESS', verified_at: null });
    scene.operations.progress(drill, { processed_files: 7, processed_bytes: 70 });
    scene.operations.finish(drill);
    await scene.later(2_000);
    const passed = {
      verify_status: 'PASSED',
      verify_error: null,
      verify_error_code: null,
      verified_files: 7,
      verified_bytes: 70,
      verified_at: naiveUtc(scene.market.clock.now()),
    };
    expect(await scene.log(id)).toMatchObject({ status: 'COMPLETED', ...passed });
    expect(await details()).toEqual(['verify_requested', 'verify_passed']);
    // The pod and the list of backups are unchanged.
    expect((await scene.pod(scene.podId)).status).toBe('RUNNING');
    expect((await scene.call('GET', '/backup-logs')).body.total).toBe(1);
  });

  it.each([
    ['RepositoryCorrupt', 'FAILED'],
    ['RepositoryMissing', 'FAILED'],
    ['VerificationFailed', 'FAILED'],
    ['NoSpace', 'INCONCLUSIVE'],
    ['RepositoryUnreachable', 'INCONCLUSIVE'],
  ] as const)('that fails with %s is recorded as %s and causes an event', async (code, status) => {
    await scene.verify(id);
    await scene.market.sync();
    scene.operations.fail(scene.drill(), { code, message: 'in its own words' });
    await scene.later(2_000);
    expect(await scene.log(id)).toMatchObject({
      status: 'COMPLETED',
      verify_status: status,
      verify_error: 'in its own words',
      verify_error_code: code,
      verified_files: null,
      verified_at: status === 'FAILED' ? naiveUtc(scene.market.clock.now()) : null,
    });
    const feed = (await scene.call('GET', '/users/me/events')).body;
    expect(JSON.stringify(feed)).toContain(`verify_${status.toLowerCase()}`);
    expect((await scene.events(scene.podId)).at(-1)).toMatchObject({
      error: 'in its own words',
      event: { backup_log_id: id, node: scene.node.id },
    });
  });

  it('runs one at a time: a repeated request returns its state, and a drill of another backup is refused', async () => {
    const other = await scene.backedUp('b');
    await scene.verify(id);
    expect((await scene.verify(id)).body.verify_status).toBe('PENDING');
    const { status, body } = await scene.verify(other);
    expect([status, body.error.code]).toEqual([409, 'BACKUP_STORAGE_BUSY']);
    await scene.market.sync();
    expect(scene.operations.calls.filter((call) => call.startsWith('verify'))).toHaveLength(1);
  });

  it('is refused during a backup, and a later backup cancels it', async () => {
    const running = await scene.backUp();
    const busy = await scene.verify(id);
    expect([busy.status, busy.body.detail.active_operation_id]).toEqual([409, running]);
    scene.operations.finish(running, 'b');
    await scene.later(2_000);

    await scene.verify(id);
    await scene.market.sync();
    const drill = scene.drill();
    const next = await scene.backUp();
    expect(scene.operations.get(drill).stage).toBe('cancelled');
    expect(await scene.log(id)).toMatchObject({
      verify_status: 'CANCELLED',
      verify_error_code: null,
      verify_error: 'Cancelled for a backup, a restore or the removal of the pod',
    });
    await scene.later(2_000);
    expect((await scene.log(next)).status).toBe('IN_PROGRESS');
    // A restore also displaces a drill that was not sent.
    scene.operations.finish(next, 'c');
    await scene.later(2_000);
    scene.host.up = false;
    await scene.verify(id);
    await scene.restore({ backup_id: id });
    expect((await scene.log(id)).verify_status).toBe('CANCELLED');
  });

  it('is cancelled by the removal of its pod', async () => {
    await scene.verify(id);
    await scene.market.sync();
    scene.host.removesAtOnce = false;
    await scene.remove(scene.podId);
    await scene.later(2_000);
    await scene.later(2_000);
    expect(scene.operations.get(scene.drill()).stage).toBe('cancelled');
    expect((await scene.log(id)).verify_status).toBe('CANCELLED');
  });

  it('protects its snapshot until it ends', async () => {
    await scene.backedUp('b');
    await scene.verify(id);
    await scene.market.sync();
    await scene.call('DELETE', `/backup-logs/${id}`);
    await scene.tend();
    expect(scene.storage.pruned).toEqual([]);
    scene.operations.finish(scene.drill());
    await scene.later(2_000);
    await scene.tend();
    expect(scene.storage.pruned).toHaveLength(1);
  });

  it('requires a completed backup of the caller', async () => {
    const stranger = await scene.market.renter();
    const path = `/backup-logs/${id}/verify`;
    const foreign = await scene.market.call('POST', path, { headers: stranger.key });
    expect([foreign.status, foreign.body.error.code]).toEqual([403, 'forbidden']);
    expect((await scene.market.call('POST', path)).status).toBe(401);
    expect((await scene.verify(NOWHERE)).status).toBe(404);
    expect((await scene.verify('x')).status).toBe(422);
    const young = await scene.backUp();
    expect((await scene.verify(young)).body.error.code).toBe('bad_request');
    await scene.call('DELETE', `/backup-logs/${id}`);
    expect((await scene.verify(id)).body.error.code).toBe('bad_request');
  });

  it('runs on another node with a pod of the account when the pod was removed, and on no other node', async () => {
    await scene.remove(scene.podId);
    await scene.market.sync();
    const nowhere = await scene.verify(id);
    expect(nowhere.body).toMatchObject({
      verify_status: 'INCONCLUSIVE',
      verify_error_code: 'NoNode',
      verified_at: null,
      verify_error: expect.stringContaining('No verified node'),
    });
    const away = await scene.market.verifiedNode({ gpus: 1 });
    await scene.market.rent(scene.account, away.id);
    await scene.market.sync();
    await scene.verify(id);
    await scene.market.sync();
    const { operations } = scene.market.agents.host(away.id);
    expect(operations.calls).toHaveLength(1);
    operations.finish(operations.calls[0]?.slice('verify '.length) ?? '');
    await scene.later(2_000);
    expect((await scene.log(id)).verify_status).toBe('PASSED');
  });

  it('reports that its node refused the drill or did not answer', async () => {
    scene.operations.refusal = new ApiError('not_found', 'no such route');
    await scene.verify(id);
    await scene.market.sync();
    expect(await scene.log(id)).toMatchObject({
      verify_status: 'INCONCLUSIVE',
      verify_error_code: 'Refused',
    });
    scene.operations.refusal = null;
    await scene.verify(id);
    await scene.market.sync();
    scene.host.up = false;
    await scene.later(110_000);
    expect((await scene.log(id)).verify_status).toBe('IN_PROGRESS');
    await scene.later(30_000);
    expect(await scene.log(id)).toMatchObject({
      verify_status: 'INCONCLUSIVE',
      verify_error_code: 'NodeSilent',
    });
    scene.host.up = true;
    await scene.later(30_000);
    expect(scene.operations.get(scene.drill()).stage).toBe('cancelled');
  });

  it('also ends on a node that is no longer polled', async () => {
    await scene.verify(id);
    await scene.market.sync();
    const { db, clock } = scene.market.ports;
    const ended = { state: 'deleted', ended_at: clock.now() };
    await db.updateTable('pods').set(ended).where('id', '=', scene.podId).execute();
    await scene.tend(100_000);
    expect((await scene.log(id)).verify_status).toBe('IN_PROGRESS');
    await scene.tend(30_000);
    expect((await scene.log(id)).verify_error_code).toBe('NodeSilent');
  });
});

describe('scheduled drills', () => {
  /** Creates a schedule whose next backup is far in the future. */
  async function put(podId = scene.podId, on = scene): Promise<string> {
    const { body } = await on.call('POST', '/backup-configs', {
      pod_id: podId,
      backup_frequency_hours: 720,
      retention_days: 365,
      backup_path: '/workspace',
    });
    const { db, clock } = on.market.ports;
    const later = { next_at: clock.now() + 10_000 * HOUR_MS };
    await db.updateTable('backup_configs').set(later).where('id', '=', body.id).execute();
    return body.id;
  }
  const drills = () => scene.operations.calls.filter((call) => call.startsWith('verify'));

  /** Advances the clock by `ms` and runs the job after each step. */
  async function pass(ms: number, stepMs = HOUR_MS): Promise<void> {
    for (let left = ms; left > 0; left -= stepMs) {
      await scene.tend(Math.min(left, stepMs));
      await scene.market.sync();
    }
  }

  it('verify the newest backup of each schedule once in an interval, at its offset', async () => {
    await scene.backedUp('a');
    const newest = await scene.backedUp('b');
    await put();
    await scene.tend();
    const { db, clock } = scene.market.ports;
    const config = await db.selectFrom('backup_configs').selectAll().executeTakeFirstOrThrow();
    const firstInMs = (config.drill_at ?? 0) - clock.now();
    expect(firstInMs).toBeGreaterThan(0);
    expect(firstInMs).toBeLessThanOrEqual(EVERY_HOURS * HOUR_MS);
    await scene.tend(firstInMs - 1);
    await scene.market.sync();
    expect(drills()).toEqual([]);
    await pass(1);
    expect(drills()).toHaveLength(1);
    expect(scene.operations.requests.get(scene.drill())).toMatchObject({
      snapshot_id: 'b'.repeat(64),
    });
    scene.operations.finish(scene.drill());
    await scene.later(2_000);
    expect((await scene.log(newest)).verify_status).toBe('PASSED');
    expect(await details(), 'only the end of a drill causes an event').toEqual(['verify_passed']);
    await pass(EVERY_HOURS * HOUR_MS - 2_001, EVERY_HOURS * HOUR_MS);
    expect(drills()).toHaveLength(1);
    await pass(1);
    expect(drills()).toHaveLength(2);
  });

  it('begin a single missed drill after a downtime', async () => {
    await scene.backedUp();
    await put();
    await scene.tend();
    await scene.market.clock.advance(10 * EVERY_HOURS * HOUR_MS);
    await pass(2_000, 1_000);
    expect(drills()).toHaveLength(1);
    scene.operations.finish(scene.drill());
    await pass(2_000, 1_000);
    expect(drills()).toHaveLength(1);
  });

  it('run one at a time on a node and wait for backups of their pod', async () => {
    const other = await scene.running();
    await scene.backedUp('a');
    await scene.backedUp('b', other);
    await put();
    await put(other);
    await scene.tend();
    await scene.market.clock.advance(2 * EVERY_HOURS * HOUR_MS);
    await pass(1_000);
    expect(drills()).toHaveLength(1);
    const first = scene.drill();
    // Postpone the next regular drill of the pod.
    const { db, clock } = scene.market.ports;
    const later = { drill_at: clock.now() + 10_000 * HOUR_MS };
    const postponeDrill = () => {
      const { pod_id: podId } = scene.operations.get(scene.drill());
      return db.updateTable('backup_configs').set(later).where('pod_id', '=', podId).execute();
    };
    await postponeDrill();
    await pass(HOUR_MS, 10 * MINUTE_MS);
    expect(drills()).toHaveLength(1);
    scene.operations.finish(first);
    await scene.later(2_000);
    await pass(20 * MINUTE_MS, 10 * MINUTE_MS);
    expect(drills()).toHaveLength(2);
    // A displaced drill is retried before the next regular one.
    await postponeDrill();
    const second = scene.operations.get(scene.drill());
    const backup = await scene.backUp({}, second.pod_id);
    await pass(HOUR_MS, 10 * MINUTE_MS);
    expect(drills()).toHaveLength(2);
    scene.operations.finish(backup, 'c');
    await scene.later(2_000);
    await pass(20 * MINUTE_MS, 10 * MINUTE_MS);
    expect(drills()).toHaveLength(3);
    expect(scene.operations.requests.get(scene.drill())).toMatchObject({
      snapshot_id: 'c'.repeat(64),
    });
  });

  it('do not run without a backup, without a schedule, or if the operator disables drills', async () => {
    const id = await put();
    await scene.tend();
    await scene.market.clock.advance(2 * EVERY_HOURS * HOUR_MS);
    await pass(1_000);
    await scene.backedUp();
    await scene.call('DELETE', `/backup-configs/${id}`);
    await scene.market.clock.advance(2 * EVERY_HOURS * HOUR_MS);
    await pass(1_000);
    expect(drills()).toEqual([]);
    const without = await createBackupScene({ backupDrillHours: 0 });
    await without.backedUp();
    await put(without.podId, without);
    await without.tend();
    await without.market.clock.advance(2_000 * HOUR_MS);
    await without.tend();
    await without.market.sync();
    expect(without.operations.calls.filter((call) => call.startsWith('verify'))).toEqual([]);
    await without.close();
  });
});
