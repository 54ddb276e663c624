/** Schedules of backups and their runs. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { naiveUtc, parseIsoTime } from '#shared/runtime/clock.ts';
import {
  type BackupScene,
  createBackupScene,
} from '../../../test/fakes/scenes/central-backup-scene.ts';

const NOWHERE = '00000000-0000-4000-8000-000000000000';
const HOUR_MS = 3_600_000;

let scene: BackupScene;
beforeEach(async () => {
  scene = await createBackupScene();
});
afterEach(() => scene.close());

const put = (body: object = {}) =>
  scene.call('POST', '/backup-configs', {
    pod_id: scene.podId,
    backup_frequency_hours: 6,
    retention_days: 7,
    backup_path: '/workspace/data',
    ...body,
  });
const ofPod = (id = scene.podId) => scene.call('GET', `/backup-configs/pod/${id}`);
const logs = async () => (await scene.call('GET', '/backup-logs')).body.items;
const timeUntil = (time: string) => (parseIsoTime(time) ?? 0) - scene.market.clock.now();

/** Advances the clock to the next run of the schedule and begins it. */
async function run(): Promise<void> {
  await scene.tend(timeUntil((await ofPod()).body.next_run_at));
  await scene.market.sync();
}

it('stores one schedule for each pod: a repeated request replaces the schedule, or reactivates a deleted one', async () => {
  expect(await ofPod()).toMatchObject({ status: 200, body: null });
  const made = await put();
  expect(made).toMatchObject({
    status: 200,
    body: {
      pod_id: scene.podId,
      pod_executor_id: scene.node.id,
      is_active: true,
      backup_frequency_hours: 6,
      retention_days: 7,
      backup_path: '/workspace/data',
      created_at: naiveUtc(scene.market.clock.now()),
    },
  });
  expect(timeUntil(made.body.next_run_at)).toBeGreaterThan(0);
  expect(timeUntil(made.body.next_run_at)).toBeLessThanOrEqual(6 * HOUR_MS);
  const changed = await put({ backup_frequency_hours: 12 });
  expect(changed.body).toMatchObject({ id: made.body.id, backup_frequency_hours: 12 });
  expect((await scene.call('GET', '/backup-configs')).body).toEqual([changed.body]);
  expect((await ofPod()).body).toEqual(changed.body);
  expect((await scene.pod(scene.podId)).backup_config).toEqual(changed.body);
  const gone = await scene.call('DELETE', `/backup-configs/${made.body.id}`);
  expect(gone.body).toMatchObject({ id: made.body.id, is_active: false, next_run_at: null });
  expect((await ofPod()).body).toBe(null);
  expect((await scene.call('GET', '/backup-configs')).body).toEqual([]);
  const again = await scene.call('DELETE', `/backup-configs/${made.body.id}`);
  expect([again.status, again.body.error.code]).toEqual([404, 'not_found']);
  expect((await put()).body).toMatchObject({ id: made.body.id, is_active: true });
});

it('accepts a node’s id instead of the pod’s id in every route of a pod, if the caller has one pod on the node', async () => {
  const { id: node } = scene.node;
  const made = await put({ pod_id: undefined, pod_executor_id: node });
  expect([made.status, made.body.pod_id]).toEqual([200, scene.podId]);
  expect((await ofPod(node)).body).toEqual(made.body);
  const begun = await scene.call('POST', `/pods/${node}/backup`, {});
  expect(begun.status).toBe(200);
  const { body } = await scene.call('GET', `/backup-logs/pod/${node}`);
  expect(body.items).toMatchObject([{ id: begun.body.backup_log_id, pod_id: scene.podId }]);
  await scene.market.sync();
  scene.operations.finish(begun.body.backup_log_id);
  await scene.later(2_000);
  const restored = await scene.call('POST', `/pods/${node}/restore`, {
    backup_id: begun.body.backup_log_id,
    restore_path: '/workspace',
  });
  expect(restored.status).toBe(200);
  expect((await scene.call('GET', `/pods/${node}/restore-logs`)).body).toMatchObject({
    total: 1,
    items: [{ id: restored.body.restore_log_id, pod_id: scene.podId }],
  });
  const none = await put({ pod_id: undefined });
  expect([none.status, none.body.validation_errors[0].field]).toEqual([422, 'body.pod_id']);
  await scene.running();
  const several = await put({ pod_id: undefined, pod_executor_id: node });
  expect([several.status, several.body.error.code]).toEqual([400, 'bad_request']);
});

it('requires a pod of the caller', async () => {
  const { id } = (await put()).body;
  const stranger = await scene.market.renter();
  const sent = { headers: stranger.key };
  const foreign = await scene.market.call('DELETE', `/backup-configs/${id}`, sent);
  expect([foreign.status, foreign.body.error.code]).toEqual([403, 'forbidden']);
  const absent = await scene.market.call('GET', `/backup-configs/pod/${scene.podId}`, sent);
  expect([absent.status, absent.body.error.code]).toEqual([404, 'pod_not_found']);
  expect((await put({ pod_id: NOWHERE })).body.error.code).toBe('pod_not_found');
  expect((await scene.market.call('GET', '/backup-configs', sent)).body).toEqual([]);
});

it('answers 422 to an invalid schedule and 400 to a path that cannot be backed up', async () => {
  for (const [field, value] of [
    ['backup_frequency_hours', 0],
    ['backup_frequency_hours', 721],
    ['backup_frequency_hours', 1.5],
    ['retention_days', 0],
    ['retention_days', 366],
    ['pod_id', 'x'],
    ['backup_path', ''],
    ['backup_path', undefined],
  ] as const) {
    const { status, body } = await put({ [field]: value });
    expect([field, status, body.validation_errors[0].field]).toEqual([field, 422, `body.${field}`]);
  }
  for (const backup_path of ['/proc', '/mnt', '/tmp', '/workspace/../..', 'workspace']) {
    const { status, body } = await put({ backup_path });
    expect([backup_path, status, body.error.code]).toEqual([backup_path, 400, 'bad_request']);
  }
});

it('begins backups at the times of the schedule and sets their retention', async () => {
  const config = (await put()).body;
  await run();
  const [log] = await logs();
  expect(log).toMatchObject({
    backup_config_id: config.id,
    backup_path: '/workspace/data',
    status: 'IN_PROGRESS',
  });
  scene.operations.finish(log.id);
  await scene.later(2_000);
  const [done] = await logs();
  expect(timeUntil(done.expires_at)).toBe(7 * 24 * HOUR_MS);
  expect(timeUntil((await ofPod()).body.next_run_at)).toBe(6 * HOUR_MS - 2_000);
  // The next run does not begin before its time.
  await scene.tend(6 * HOUR_MS - 2_001);
  expect(await logs()).toHaveLength(1);
  await scene.tend(1);
  expect(await logs()).toHaveLength(2);
});

it('begins a single missed run after a downtime', async () => {
  await put({ backup_frequency_hours: 1 });
  await scene.tend(50 * HOUR_MS);
  await scene.tend();
  expect(await logs()).toHaveLength(1);
});

it('skips a run during another operation and reports the skipped run', async () => {
  await put();
  await scene.backUp();
  await run();
  expect((await logs())[0]).toMatchObject({
    status: 'SKIPPED',
    status_message: 'A backup of this pod is running',
    started_at: null,
    completed_at: naiveUtc(scene.market.clock.now()),
  });
  expect(scene.operations.requests.size).toBe(1);
  expect(await scene.eventsOf('backup')).toEqual(['requested']);
});

it('ends the schedule with its pod', async () => {
  await put();
  await scene.remove(scene.podId);
  await scene.market.sync();
  expect((await ofPod()).body).toBe(null);
  expect((await scene.call('GET', '/backup-configs')).body).toEqual([]);
  await scene.tend(7 * HOUR_MS);
  expect(await logs()).toEqual([]);
});
