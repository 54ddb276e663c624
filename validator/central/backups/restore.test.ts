/** Restores into a running pod and with a rental, through the API. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type BackupScene,
  createBackupScene,
} from '../../../test/fakes/scenes/central-backup-scene.ts';
import { DEFAULT_TEMPLATE } from '../../../test/fakes/scenes/market-fixture.ts';

const NOWHERE = '00000000-0000-4000-8000-000000000000';

let scene: BackupScene;
let backupId: string;
beforeEach(async () => {
  scene = await createBackupScene();
  backupId = await scene.backedUp();
});
afterEach(() => scene.close());

const trigger = (body: object) => scene.call('POST', `/pods/${scene.podId}/restore`, body);

it('runs a restore on the node and polls it until it ends', async () => {
  const id = await scene.restore({ backup_id: backupId, restore_path: '/workspace/data/' });
  expect(scene.operations.requests.get(id)).toMatchObject({
    operation_id: id,
    snapshot_id: 'a'.repeat(64),
    source_path: '/workspace',
    target_path: '/workspace/data',
    mode: 'replace',
    repository: scene.operations.requests.get(backupId)?.repository,
  });
  const stages: [node: 'queued' | 'verifying' | 'swapping', shown: string][] = [
    ['queued', 'PREPARING'],
    ['verifying', 'RESTORING'],
    ['swapping', 'FINALIZING'],
  ];
  for (const [stage, shown] of stages) {
    scene.operations.progress(id, { stage, percent: 50, log: ['one', 'two'] });
    await scene.later(2_000);
    expect((await scene.restores())[0]).toMatchObject({
      id,
      backup_id: backupId,
      status: 'IN_PROGRESS',
      stage: shown,
      progress: 50,
      logs: 'one\ntwo',
      restore_path: '/workspace/data',
      mode: 'replace',
      backup_engine: 'restic',
      restore_mode: 'LIVE',
    });
  }
  scene.operations.finish(id);
  await scene.later(2_000);
  expect((await scene.restores())[0]).toMatchObject({ status: 'COMPLETED', progress: 100 });
  expect(await scene.eventsOf('restore')).toEqual(['requested', 'success']);
});

it('passes `salvage` on, and shows what a restore could not read and whether it restarted the pod', async () => {
  const plain = await scene.restore({ backup_id: backupId });
  expect(scene.operations.requests.get(plain)).not.toHaveProperty('salvage');
  scene.operations.progress(plain, { stage: 'verifying', restarts_pod: false });
  scene.operations.finish(plain);
  await scene.later(2_000);
  expect((await scene.restores())[0]).toMatchObject({
    salvage: false,
    lost_files: null,
    lost_files_total: null,
    restarted_pod: false,
  });

  const id = await scene.restore({ backup_id: backupId, salvage: true });
  expect(scene.operations.requests.get(id)).toMatchObject({ salvage: true });
  expect((await scene.restores())[0]).toMatchObject({ salvage: true, restarted_pod: null });
  const lost_files = { count: 3, paths: ['/workspace/a', '/workspace/b'] };
  scene.operations.progress(id, { stage: 'starting', lost_files, restarts_pod: true });
  scene.operations.finish(id);
  await scene.later(2_000);
  expect((await scene.restores())[0]).toMatchObject({
    status: 'COMPLETED',
    salvage: true,
    lost_files: lost_files.paths,
    lost_files_total: 3,
    restarted_pod: true,
  });

  const failing = await scene.restore({ backup_id: backupId });
  scene.operations.progress(failing, { stage: 'starting', restarts_pod: true });
  scene.operations.fail(failing, { code: 'RolledBack', message: 'it has its old tree again' });
  await scene.later(2_000);
  const events: { sub_event_type: string; detail: string | null; event: object }[] =
    await scene.events(scene.podId);
  const ended = events.filter(({ sub_event_type: type }) =>
    ['restore.success', 'restore.failed'].includes(type),
  );
  expect(ended.map(({ detail }) => detail)).toEqual([null, 'partial', 'pod_restarted']);
  expect(ended.map(({ event }) => 'restarted_pod' in event)).toEqual([false, true, true]);
});

it('restores /root into a pod on another node, without volumes', async () => {
  const home = await scene.post(scene.podId, 'backup');
  expect(home.status).toBe(200);
  await scene.market.sync();
  scene.operations.finish(home.body.backup_log_id, 'b');
  await scene.later(2_000);
  const node = await scene.market.verifiedNode({ gpus: 1 });
  const template = await scene.template({ volumes: [] });
  const rented = await scene.market.rent(scene.account, node.id, { template_id: template.id });
  await scene.market.sync();
  const { operations } = scene.market.agents.host(node.id);
  for (const restore_path of ['/root', '/home/', '/opt/x']) {
    const sent = { backup_id: home.body.backup_log_id, restore_path };
    const { status, body } = await scene.post(rented.body.id, 'restore', sent);
    expect(status, JSON.stringify(body)).toBe(200);
    await scene.market.sync();
    const { restore_log_id: id } = body;
    const target_path = restore_path.replace(/\/$/, '');
    expect(operations.requests.get(id)).toMatchObject({ target_path, mode: 'replace' });
    operations.finish(id);
    await scene.later(2_000);
    expect((await scene.restores(rented.body.id))[0]).toMatchObject({
      id,
      status: 'COMPLETED',
      restore_path: target_path,
    });
  }
});

it('refuses to restore into a folder that is never backed up, and to back up such a folder', async () => {
  const never = ['/tmp/x', '/var/tmp', '/mnt', '/proc/1/root', '/sys', '/dev/shm'];
  for (const path of [...never, '/', '/root/..', '/workspace/../etc', 'root']) {
    const days = { backup_frequency_hours: 1, retention_days: 1 };
    const config = { pod_id: scene.podId, ...days, backup_path: path };
    const answers = [
      await trigger({ backup_id: backupId, restore_path: path }),
      await scene.call('POST', '/backup-configs', config),
    ];
    for (const { status, body } of answers) {
      expect([path, status, body.error.code]).toEqual([path, 400, 'bad_request']);
      expect(body.message).toMatch(/^The path /);
    }
  }
  expect(await scene.restores()).toEqual([]);
});

it('reports that the node has rolled a restore back', async () => {
  const id = await scene.restore({ backup_id: backupId, mode: 'new_only' });
  expect(scene.operations.requests.get(id)).toMatchObject({ mode: 'new_only' });
  scene.operations.fail(id, { code: 'RolledBack', message: 'the pod did not start' });
  await scene.later(2_000);
  const { body } = await scene.call('GET', `/pods/${scene.podId}/restore-logs`);
  expect(body).toMatchObject({
    total: 1,
    page: 1,
    limit: 20,
    has_next: false,
    items: [{ status: 'FAILED', error_code: 'RolledBack', error_message: 'the pod did not start' }],
  });
  expect(await scene.eventsOf('restore')).toEqual(['requested', 'failed']);
});

it('cancels a restore on its node', async () => {
  const id = await scene.restore({ backup_id: backupId });
  const { body } = await scene.call('POST', `/restore-logs/${id}/cancel`);
  expect(body.status).toBe('IN_PROGRESS');
  await scene.market.sync();
  expect((await scene.restores())[0].status).toBe('CANCELLED');
  const stranger = await scene.market.renter();
  const path = `/restore-logs/${id}/cancel`;
  const foreign = await scene.market.call('POST', path, { headers: stranger.key });
  expect([foreign.status, foreign.body.error.code]).toEqual([403, 'forbidden']);
  expect((await scene.call('POST', `/restore-logs/${NOWHERE}/cancel`)).status).toBe(404);
});

it('requires a completed backup of the caller', async () => {
  const restore_path = '/workspace';
  const absent = await trigger({ backup_id: NOWHERE, restore_path });
  expect([absent.status, absent.body.error.code]).toEqual([404, 'not_found']);
  const stranger = await scene.market.renter();
  const node = await scene.market.verifiedNode({ gpus: 1 });
  const theirs = (await scene.market.rent(stranger, node.id)).body.id;
  await scene.market.sync();
  const foreign = await scene.market.call('POST', `/pods/${theirs}/restore`, {
    headers: stranger.key,
    body: { backup_id: backupId, restore_path },
  });
  expect([foreign.status, foreign.body.error.code]).toEqual([403, 'forbidden']);
  await scene.call('DELETE', `/backup-logs/${backupId}`);
  const deleted = await trigger({ backup_id: backupId, restore_path });
  expect([deleted.status, deleted.body.error.code]).toEqual([400, 'bad_request']);
  expect((await trigger({ backup_id: 7, restore_path })).status).toBe(422);
  expect((await trigger({ backup_id: backupId, restore_path, mode: 'over' })).status).toBe(422);
});

it('refuses a `new_only` restore into a folder that is not empty', async () => {
  scene.operations.occupied.add('/workspace/data');
  const body = { backup_id: backupId, restore_path: '/workspace/data/', mode: 'new_only' };
  const { status, body: refused } = await trigger(body);
  expect(refused).toMatchObject({
    error: { code: 'conflict' },
    message: '/workspace/data/ exists and is not empty',
    details: { restore_path: '/workspace/data/' },
  });
  expect([status, await scene.restores()]).toEqual([409, []]);
  expect((await trigger({ ...body, restore_path: '/tmp/x' })).status).toBe(400);
  // The target is not checked again for a repeat of an accepted request.
  const sent = { headers: { ...scene.account.key, 'idempotency-key': 'once' } };
  const path = `/pods/${scene.podId}/restore`;
  const fresh = { ...sent, body: { ...body, restore_path: '/workspace/new' } };
  const taken = await scene.market.call('POST', path, fresh);
  scene.operations.occupied.add('/workspace/new');
  expect((await scene.market.call('POST', path, fresh)).body).toEqual(taken.body);
  await scene.market.sync();
  scene.operations.finish(taken.body.restore_log_id);
  await scene.later(2_000);
  // A node that does not answer now checks the target before the restore.
  scene.host.up = false;
  expect((await trigger(body)).status).toBe(200);
});

describe('a restore with a rental', () => {
  const rent = (body: object) =>
    scene.market.rent(scene.account, scene.node.id, { gpu_count: 1, ...body });

  it('waits until the pod runs, and the pod is not ready before the restore ends', async () => {
    scene.host.arrives = 'pulling';
    const rented = await rent({ backup_log_id: backupId, restore_path: '/workspace' });
    expect(rented.status).toBe(200);
    const { id } = rented.body;
    for (let minutes = 0; minutes < 4; minutes += 1) await scene.later(60_000);
    const [waiting] = await scene.restores(id);
    expect(waiting).toMatchObject({ status: 'PENDING', restore_mode: 'STARTUP', stage: null });
    scene.host.change(id, { phase: 'running' });
    await scene.later();
    await scene.later(2_000);
    expect((await scene.restores(id))[0]).toMatchObject({ id: waiting.id, status: 'IN_PROGRESS' });
    expect(scene.operations.calls).toContain(`restore ${waiting.id}`);
    expect(await scene.eventsOf('restore', id)).toEqual(['requested']);
    // The node stops the pod to replace its files and starts it again.
    for (const phase of ['running', 'pending', 'starting'] as const) {
      scene.host.change(id, { phase });
      scene.operations.progress(waiting.id, { stage: 'swapping' });
      await scene.later(2_000);
      expect(await scene.pod(id)).toMatchObject({
        status: 'PENDING',
        phase: 'restoring',
        reason_code: null,
        ssh_connect_cmd: null,
        message: 'The backup is being restored',
        estimated_ready_seconds: null,
      });
    }
    scene.host.change(id, { phase: 'running' });
    scene.operations.finish(waiting.id);
    await scene.later(2_000);
    await scene.later(2_000);
    expect(await scene.pod(id)).toMatchObject({ status: 'RUNNING', phase: 'ready', message: null });
    const events: { sub_event_type: string; detail: string | null }[] = await scene.events(id);
    const moves = events.filter(({ sub_event_type: type }) => type.startsWith('pod-'));
    expect(moves.slice(-2)).toMatchObject([
      { sub_event_type: 'pod-lifecycle.status', detail: 'restoring' },
      { sub_event_type: 'pod-create.success' },
    ]);
  });

  it('does not count against the time limit of the launch, which starts again after the restore', async () => {
    const rented = await rent({ backup_log_id: backupId, restore_path: '/workspace' });
    const { id } = rented.body;
    await scene.market.sync();
    const [restore] = await scene.restores(id);
    for (let minute = 0; minute < 45; minute += 1) {
      scene.operations.progress(restore.id, { stage: 'swapping' });
      await scene.later(60_000);
    }
    expect((await scene.pod(id)).phase).toBe('restoring');
    scene.host.change(id, { phase: 'starting' });
    scene.operations.finish(restore.id);
    await scene.later(2_000);
    await scene.later(2_000);
    expect((await scene.pod(id)).phase).toBe('starting');
    for (let minute = 0; minute < 9; minute += 1) await scene.later(60_000);
    expect((await scene.pod(id)).status).toBe('PENDING');
    await scene.later(60_000);
    expect((await scene.pod(id)).status).toBe('CREATION_FAILED');
  });

  it('leaves the pod running with its data when the restore fails', async () => {
    const rented = await rent({ backup_log_id: backupId, restore_path: '/workspace' });
    const { id } = rented.body;
    await scene.market.sync();
    expect((await scene.pod(id)).phase).toBe('restoring');
    const [restore] = await scene.restores(id);
    scene.operations.fail(restore.id, { code: 'RepositoryCorrupt', message: 'a pack is damaged' });
    await scene.later(2_000);
    await scene.later(2_000);
    expect((await scene.pod(id)).status).toBe('RUNNING');
    expect((await scene.restores(id))[0]).toMatchObject({ error_message: 'a pack is damaged' });
  });

  it('ends when its pod ends before it has run', async () => {
    scene.host.arrives = 'failed';
    const { id } = (await rent({ backup_log_id: backupId, restore_path: '/workspace' })).body;
    await scene.market.sync();
    await scene.later();
    const { db } = scene.market.ports;
    const rows = await db.selectFrom('restore_logs').selectAll().where('pod_id', '=', id).execute();
    expect(rows).toMatchObject([{ state: 'FAILED', error_code: 'PodGone' }]);
  });

  it('requires backup and path together, and a backup that can be restored', async () => {
    for (const body of [
      { backup_log_id: backupId },
      { restore_path: '/workspace' },
      { backup_log_id: backupId, restore_path: '/dev' },
    ]) {
      const { status, body: answer } = await rent(body);
      expect([status, answer.error.code]).toEqual([400, 'bad_request']);
    }
    const wish = { backup_log_id: NOWHERE, restore_path: '/workspace' };
    expect((await rent(wish)).body.error.code).toBe('not_found');
    expect(await scene.freeGpus()).toBe(1);
    const spec = {
      pod_name: 'by spec',
      template_id: DEFAULT_TEMPLATE,
      backup_log_id: backupId,
      restore_path: '/workspace',
    };
    const chosen = await scene.call('POST', '/executors/rent-by-spec', { ...spec, gpu_count: 1 });
    expect(chosen.status).toBe(200);
    expect(await scene.restores(chosen.body.id)).toMatchObject([{ backup_id: backupId }]);
  });
});
