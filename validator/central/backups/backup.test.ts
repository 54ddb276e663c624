/** Backups from the request to the node and back, through the API. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import {
  type BackupScene,
  createBackupScene,
} from '../../../test/fakes/scenes/central-backup-scene.ts';
import { createPodScene } from '../../../test/fakes/scenes/pod-scene.ts';

const NOWHERE = '00000000-0000-4000-8000-000000000000';
const DAY_MS = 86_400_000;
/** Interval of cleanups. */
const CLEANUP_MS = 60_000;

let scene: BackupScene;
beforeEach(async () => {
  scene = await createBackupScene();
});
afterEach(() => scene.close());

const trigger = (body: object = {}) => scene.call('POST', `/pods/${scene.podId}/backup`, body);

describe('a manual backup', () => {
  it('runs on the node and is polled until it ends', async () => {
    const id = await scene.backUp({ name: 'first', description: 'by hand\nindeed' });
    expect(scene.operations.requests.get(id)).toEqual({
      operation_id: id,
      path: '/workspace',
      renter: { id: expect.any(String), is_present: true },
      create_repository: true,
      repository: {
        location: expect.stringMatching(/^rest:http:\/\/storage\.test\//),
        password: expect.stringMatching(/^[\w-]{43}$/),
        environment: { RESTIC_REST_USERNAME: 'append', RESTIC_REST_PASSWORD: scene.account.id },
      },
    });
    expect(await scene.log(id)).toMatchObject({
      id,
      pod_id: scene.podId,
      name: 'first',
      description: 'by hand\nindeed',
      status: 'IN_PROGRESS',
      stage: 'QUEUED',
      progress: 0,
      backup_path: '/workspace',
      backup_config_id: null,
      completed_at: null,
      sha256: null,
      error_message: null,
    });
    const counters = { total_files: 10, processed_files: 4, total_bytes: 100 };
    const pace = { processed_bytes: 40, bytes_per_second: 20, remaining_seconds: 3 };
    scene.operations.progress(id, { stage: 'uploading', percent: 40, ...counters, ...pace });
    await scene.later(2_000);
    expect(await scene.log(id)).toMatchObject({
      stage: 'UPLOADING',
      progress: 40,
      ...counters,
      processed_bytes: 40,
      throughput_bytes_per_second: 20,
      estimated_remaining_seconds: 3,
      elapsed_seconds: 2,
      last_heartbeat_at: naiveUtc(scene.market.clock.now()),
    });
    // Percent never decreases.
    scene.operations.progress(id, { percent: 30 });
    await scene.later(2_000);
    expect((await scene.log(id)).progress).toBe(40);
    scene.operations.finish(id);
    await scene.later(2_000);
    const nowMs = scene.market.clock.now();
    expect(await scene.log(id)).toMatchObject({
      status: 'COMPLETED',
      progress: 100,
      sha256: 'a'.repeat(64),
      quality: 'full',
      completed_at: naiveUtc(nowMs),
      expires_at: naiveUtc(nowMs + 30 * DAY_MS),
      error_message: null,
      deletion_state: null,
      stage: null,
    });
    expect(await scene.eventsOf('backup')).toEqual(['requested', 'success']);
    const [requested, done] = (await scene.events(scene.podId)).slice(-2);
    expect([requested.actor.auth, done.actor.auth]).toEqual(['api_key', 'system']);
    expect(done).toMatchObject({
      request_id: requested.request_id,
      event: { backup_log_id: id, node: scene.node.id },
    });
  });

  it('reports a partial backup', async () => {
    const id = await scene.backUp();
    scene.operations.finish(id, 'a', 'partial');
    await scene.later(2_000);
    expect(await scene.log(id)).toMatchObject({
      status: 'COMPLETED',
      quality: 'partial',
      error_message: null,
      status_message: 'Some files could not be read and are not in the backup',
    });
    const [event] = (await scene.events(scene.podId)).slice(-1);
    expect(event).toMatchObject({ sub_event_type: 'backup.success', detail: 'partial' });
  });

  it('lists the files that changed while the node read them', async () => {
    const id = await scene.backUp();
    expect(await scene.log(id)).toMatchObject({ changed_files: null, changed_files_total: null });
    const paths = Array.from({ length: 100 }, (_, index) => `/workspace/log ${index}`);
    scene.operations.progress(id, { changed_files: { count: 250, paths } });
    scene.operations.finish(id);
    await scene.later(2_000);
    expect(await scene.log(id)).toMatchObject({
      status: 'COMPLETED',
      quality: 'full',
      changed_files: paths,
      changed_files_total: 250,
      status_message: '250 files changed while they were read',
    });
    const quiet = await scene.backedUp('b');
    expect((await scene.log(quiet)).changed_files, 'a node that cannot list them').toBeNull();
    expect((await scene.call('GET', '/backup-logs')).body.items[1].changed_files).toEqual(paths);
  });

  it.each(['/root', '/home', '/opt/x'])(
    'backs up %s, which is outside every volume',
    async (path) => {
      const days = { backup_frequency_hours: 1, retention_days: 1 };
      const config = { pod_id: scene.podId, ...days, backup_path: path };
      const { status, body } = await scene.call('POST', '/backup-configs', config);
      expect([status, body.backup_path]).toEqual([200, path]);
      const id = await scene.backUp();
      expect(scene.operations.requests.get(id)).toMatchObject({ path });
      expect((await scene.log(id)).backup_path).toBe(path);
    },
  );

  it('backs up /root of a pod without volumes and schedule', async () => {
    const template = await scene.template({ volumes: [] });
    const id = await scene.running({ template_id: template.id });
    const { body } = await scene.post(id, 'backup', {});
    await scene.market.sync();
    expect(scene.operations.requests.get(body.backup_log_id)).toMatchObject({ path: '/root' });
  });

  it('creates the repository once with a sealed, constant password', async () => {
    const [first, second] = [await scene.backedUp(), await scene.backedUp('b')];
    const requests = [first, second].map((id) => scene.operations.requests.get(id));
    expect(requests[1]).toMatchObject({
      create_repository: false,
      repository: requests[0]?.repository,
    });
    const rows = await scene.market.ports.db
      .selectFrom('backup_repositories')
      .selectAll()
      .execute();
    expect(rows).toHaveLength(1);
    expect(JSON.stringify(rows)).not.toContain(requests[0]?.repository.password);
  });

  it('runs once for one Idempotency-Key', async () => {
    const sent = {
      headers: { ...scene.account.key, 'idempotency-key': 'again' },
      body: { name: 'n' },
    };
    const post = () => scene.market.call('POST', `/pods/${scene.podId}/backup`, sent);
    const [first, repeat] = [await post(), await post()];
    expect(repeat.body).toEqual(first.body);
    expect(repeat.headers['idempotent-replayed']).toBe('true');
    expect((await scene.call('GET', '/backup-logs')).body.total).toBe(1);
  });

  it('blocks other operations on the pod and names the open operation', async () => {
    const id = await scene.backUp();
    const { status, body } = await trigger();
    expect(status).toBe(409);
    expect(body).toMatchObject({
      error: { code: 'BACKUP_STORAGE_BUSY' },
      detail: { message: 'A backup of this pod is running', active_operation_id: id },
      details: { active_operation_id: id },
    });
    scene.operations.finish(id);
    await scene.later(2_000);
    const restoreId = await scene.restore({ backup_id: id });
    const meanwhile = await trigger();
    expect(meanwhile.body.detail).toEqual({
      message: 'A restore of this pod is running',
      active_operation_id: restoreId,
    });
  });

  it('reports why the backup failed, and can be repeated', async () => {
    const id = await scene.backUp();
    scene.operations.fail(id, { code: 'RepositoryNoSpace', message: 'the storage is full' });
    await scene.later(2_000);
    expect(await scene.log(id)).toMatchObject({
      status: 'FAILED',
      error_code: 'RepositoryNoSpace',
      error_message: 'the storage is full',
    });
    expect(await scene.eventsOf('backup')).toEqual(['requested', 'failed']);
    expect((await scene.events(scene.podId)).at(-1).error).toBe('the storage is full');
    expect((await trigger()).status).toBe(200);
  });

  it('fails at once when the node refuses the backup, and waits while the node is busy', async () => {
    scene.operations.refusal = new ApiError('bad_request', 'no such folder');
    const refused = await scene.backUp();
    expect(await scene.log(refused)).toMatchObject({
      status: 'FAILED',
      error_message: 'no such folder',
    });
    scene.operations.refusal = new ApiError('BACKUP_STORAGE_BUSY', 'something else runs');
    const waiting = await scene.backUp();
    expect(await scene.log(waiting)).toMatchObject({
      status: 'PENDING',
      error_message: null,
      status_message: 'something else runs',
    });
    scene.operations.refusal = null;
    await scene.later(2_000);
    expect((await scene.log(waiting)).status).toBe('IN_PROGRESS');
  });

  it('answers 422 to an invalid name or description', async () => {
    for (const [field, value] of [
      ['name', 'x'.repeat(201)],
      ['name', ''],
      ['name', 7],
      ['description', 'x'.repeat(1_001)],
    ] as const) {
      const { status, body } = await trigger({ [field]: value });
      expect([status, body.validation_errors[0].field]).toEqual([422, `body.${field}`]);
    }
  });

  it('requires a pod of the caller with data; the body is optional', async () => {
    const sent = { headers: scene.account.key };
    expect((await scene.market.call('POST', `/pods/${scene.podId}/backup`, sent)).status).toBe(200);
    expect((await scene.call('POST', `/pods/${NOWHERE}/backup`)).body.error.code).toBe(
      'pod_not_found',
    );
    const stranger = await scene.market.renter();
    const theirs = { headers: stranger.key, body: {} };
    const foreign = await scene.market.call('POST', `/pods/${scene.podId}/backup`, theirs);
    expect([foreign.status, foreign.body.error.code]).toEqual([404, 'pod_not_found']);
    scene.host.arrives = 'pulling';
    const young = await scene.rentOne();
    const early = await scene.call('POST', `/pods/${young}/backup`, {});
    expect([early.status, early.body.error.code]).toEqual([400, 'pod_state_conflict']);
  });
});

it('refuses backups without a storage', async () => {
  const bare = await createPodScene();
  const id = await bare.running();
  const path = { backup_path: '/workspace' };
  const config = { pod_id: id, backup_frequency_hours: 1, retention_days: 1, ...path };
  const refused = [
    await bare.call('POST', `/pods/${id}/backup`, {}),
    await bare.call('POST', '/backup-configs', config),
    await bare.call('POST', `/pods/${id}/restore`, { backup_id: NOWHERE, restore_path: '/w' }),
  ];
  for (const { status, body } of refused) {
    expect([status, body.error.code]).toEqual([400, 'bad_request']);
    expect(body.message).toBe('This marketplace has no storage for backups');
  }
  expect((await bare.call('GET', '/backup-logs')).body.items).toEqual([]);
  await bare.close();
});

describe('cancelling', () => {
  const cancel = (id: string) => scene.call('POST', `/backup-logs/${id}/cancel`);

  it('cancels an unsent backup at once', async () => {
    scene.host.up = false;
    const id = await scene.backUp();
    expect(await cancel(id)).toMatchObject({ status: 200, body: { id, status: 'CANCELLED' } });
    expect((await cancel(id)).body.status).toBe('CANCELLED');
    scene.host.up = true;
    await scene.later(60_000);
    expect(scene.operations.calls).toEqual([]);
    expect(await scene.eventsOf('backup')).toEqual(['requested', 'status']);
  });

  it('cancels a sent backup on its node', async () => {
    const id = await scene.backUp();
    expect((await cancel(id)).body).toMatchObject({
      status: 'IN_PROGRESS',
      status_message: 'Being cancelled',
    });
    await scene.market.sync();
    expect(scene.operations.get(id).stage).toBe('cancelled');
    expect((await scene.log(id)).status).toBe('CANCELLED');
    expect((await trigger()).status).toBe(200);
  });

  it('refuses to cancel a completed backup', async () => {
    const id = await scene.backUp();
    scene.operations.finish(id);
    await cancel(id);
    await scene.market.sync();
    expect((await scene.log(id)).status).toBe('COMPLETED');
    const { status, body } = await cancel(id);
    expect([status, body.error.code]).toEqual([400, 'bad_request']);
  });
});

describe('logs of backups', () => {
  it('are listed in pages, by account and by pod, newest first', async () => {
    const ids: string[] = [];
    for (const digit of ['a', 'b', 'c']) ids.unshift(await scene.backedUp(digit));
    const page = (path: string) => scene.call('GET', path).then(({ body }) => body);
    const idsOf = ({ items }: { items: { id: string }[] }) => items.map(({ id }) => id);
    const whole = await page('/backup-logs');
    expect(whole).toMatchObject({ total: 3, page: 1, limit: 20, has_next: false });
    expect(idsOf(whole)).toEqual(ids);
    // Some clients send a trailing slash.
    const first = await page('/backup-logs/?page=1&limit=2');
    expect([idsOf(first), first.has_next]).toEqual([ids.slice(0, 2), true]);
    const second = await page(`/backup-logs/pod/${scene.podId}?page=2&limit=2`);
    expect([idsOf(second), second.has_next, second.total]).toEqual([ids.slice(2), false, 3]);
    expect(await page(`/backup-logs/pod/${NOWHERE}`)).toMatchObject({ status_code: 404 });
  });

  it('are rejected with 422 for a page beyond the limits', async () => {
    for (const query of ['page=0', 'limit=0', 'limit=101', 'page=x']) {
      expect((await scene.call('GET', `/backup-logs?${query}`)).status).toBe(422);
    }
  });

  it('are accessible to their account only', async () => {
    const id = await scene.backedUp();
    const stranger = await scene.market.renter();
    const callAsOther = (method: 'GET' | 'POST' | 'DELETE', path: string) =>
      scene.market.call(method, path, { headers: stranger.key });
    for (const answer of [
      await callAsOther('GET', `/backup-logs/${id}`),
      await callAsOther('DELETE', `/backup-logs/${id}`),
      await callAsOther('POST', `/backup-logs/${id}/cancel`),
    ]) {
      expect([answer.status, answer.body.error.code]).toEqual([403, 'forbidden']);
    }
    expect((await callAsOther('GET', `/backup-logs/pod/${scene.podId}`)).status).toBe(404);
    expect((await callAsOther('GET', '/backup-logs')).body.total).toBe(0);
    expect((await scene.call('GET', `/backup-logs/${NOWHERE}`)).body.error.code).toBe('not_found');
    expect((await scene.market.call('GET', '/backup-logs')).status).toBe(401);
  });

  it('are kept after their pod is deleted, and the backups can be restored into another pod', async () => {
    const id = await scene.backedUp();
    await scene.remove(scene.podId);
    await scene.market.sync();
    expect((await scene.call('GET', `/backup-logs/pod/${scene.podId}`)).body.total).toBe(1);
    const other = await scene.running();
    const restoreId = await scene.restore({ backup_id: id }, other);
    expect(scene.operations.requests.get(restoreId)).toMatchObject({
      repository: { location: scene.operations.requests.get(id)?.repository.location },
    });
  });

  it('use the error envelope for client errors and the flat body for server errors', async () => {
    const refused = await scene.call('GET', `/backup-logs/${NOWHERE}`);
    expect(refused.body).toMatchObject({ success: false, error: { code: 'not_found' } });
    await scene.market.ports.db.schema.alterTable('backup_logs').renameTo('lost').execute();
    for (const path of ['/backup-logs', `/backup-logs/${NOWHERE}`]) {
      const { status, body } = await scene.call('GET', path);
      expect([status, body]).toEqual([
        500,
        { success: false, message: 'An unexpected error occurred' },
      ]);
    }
    const other = await scene.call('GET', '/backup-configs');
    expect(other.status).toBe(200);
  });
});

it('deletes backups with their account, and their data within a minute', async () => {
  const id = await scene.backedUp();
  await scene.verify(id);
  await scene.market.sync();
  const said = {
    code: 'VerificationFailed',
    message: '"/workspace/private" was not restored',
  } as const;
  scene.operations.fail(scene.drill(), said);
  await scene.later(2_000);
  expect((await scene.log(id)).verify_error).toBe(said.message);
  await scene.call('POST', '/backup-configs', {
    pod_id: scene.podId,
    backup_frequency_hours: 1,
    retention_days: 1,
    backup_path: '/workspace',
  });
  await scene.remove(scene.podId);
  await scene.market.sync();
  const { central, clock } = scene.market;
  central.start();
  await clock.advance(CLEANUP_MS);
  const gone = await scene.market.call('DELETE', '/users/me', { headers: scene.account.session });
  expect(gone.status).toBe(200);
  expect(scene.storage.removed, 'the request itself removes no data').toEqual([]);
  await clock.advance(CLEANUP_MS);
  await expect.poll(() => scene.storage.removed).toHaveLength(1);
  const { db } = scene.market.ports;
  const wholeRow = () => db.selectFrom('backup_logs').selectAll().executeTakeFirstOrThrow();
  const row = await wholeRow();
  expect(row).toMatchObject({ id, name: null, verify_error: null, state: 'DELETED' });
  await expect.poll(async () => (await wholeRow()).cleanup_at).toBeNull();
});

it('shows what a backup waits for, and names its renter to the node without naming the account', async () => {
  const id = await scene.backUp();
  const { renter } = scene.operations.requests.get(id) ?? {};
  expect(renter).toEqual({ id: expect.stringMatching(/^[0-9a-f]{32}$/), is_present: true });
  scene.operations.progress(id, { stage: 'queued', obstacle: 'The node runs 2 at a time' });
  await scene.later(2_000);
  expect(await scene.log(id)).toMatchObject({
    status: 'IN_PROGRESS',
    stage: 'QUEUED',
    status_message: 'The node runs 2 at a time',
    error_message: null,
  });
  scene.operations.progress(id, { stage: 'uploading', obstacle: null });
  await scene.later(2_000);
  expect((await scene.log(id)).status_message).toBeNull();
  scene.operations.progress(id, { obstacle: 'The storage of backups is full' });
  await scene.later(2_000);
  await scene.call('POST', `/backup-logs/${id}/cancel`);
  await scene.later(2_000);
  await scene.later(2_000);
  expect(await scene.log(id)).toMatchObject({ status: 'CANCELLED', error_message: null });
});

it('completes a backup whose node found damage of the storage, and reports the damage', async () => {
  const id = await scene.backUp();
  const damage = 'Backups are damaged in the storage: pack 0a1b: does not exist';
  scene.operations.progress(id, { damage });
  scene.operations.finish(id);
  await scene.later(2_000);
  expect(await scene.log(id)).toMatchObject({
    status: 'COMPLETED',
    verify_status: 'FAILED',
    verify_error: damage,
    verify_error_code: 'RepositoryCorrupt',
    status_message: `${damage}. Restore the backup with \`salvage\` to get everything that can be read`,
  });
  const events: { sub_event_type: string; detail: string; error: string }[] = await scene.events(
    scene.podId,
  );
  expect(events.find(({ detail }) => detail === 'verify_failed')).toMatchObject({
    sub_event_type: 'backup.status',
    error: damage,
  });
});
