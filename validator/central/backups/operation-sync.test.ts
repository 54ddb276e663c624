/** Backups and restores after lost answers, silent nodes, restarts and lost nodes: each runs exactly once. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  type BackupScene,
  createBackupScene,
} from '../../../test/fakes/scenes/central-backup-scene.ts';
import { createCentral } from '../app.ts';

let scene: BackupScene;
beforeEach(async () => {
  scene = await createBackupScene();
});
afterEach(() => scene.close());

const trigger = () => scene.call('POST', `/pods/${scene.podId}/backup`, {});

it('repeats a request whose answer was lost, and the operation runs once', async () => {
  scene.host.losesAnswers = true;
  const id = await scene.backUp();
  expect((await scene.log(id)).status).toBe('PENDING');
  scene.operations.finish(id);
  scene.host.losesAnswers = false;
  await scene.later(5_000);
  expect(await scene.log(id)).toMatchObject({ status: 'COMPLETED', sha256: 'a'.repeat(64) });
  expect(scene.operations.calls).toEqual([`backup ${id}`, `backup ${id}`]);
  expect(scene.operations.views.size).toBe(1);
  expect(await scene.eventsOf('backup')).toEqual(['requested', 'success']);
});

it('sends a backup again to a node that has lost it', async () => {
  const id = await scene.backUp();
  scene.operations.views.clear();
  await scene.later(2_000);
  expect(scene.operations.calls).toEqual([`backup ${id}`, `backup ${id}`]);
  expect((await scene.log(id)).status).toBe('IN_PROGRESS');
});

it('does not repeat a restore that a node has lost', async () => {
  const backup_id = await scene.backedUp();
  const id = await scene.restore({ backup_id });
  scene.operations.views.clear();
  await scene.later(2_000);
  expect(scene.operations.calls.filter((call) => call === `restore ${id}`)).toHaveLength(1);
  expect(await scene.restores()).toMatchObject([
    { status: 'FAILED', error_message: expect.stringContaining('has lost the restore') },
  ]);
});

it('fails an operation after 120 seconds of silence, and cancels it when the node answers again', async () => {
  const id = await scene.backUp();
  scene.operations.progress(id, { stage: 'uploading' });
  await scene.later(2_000);
  scene.host.up = false;
  for (let ms = 0; ms < 119_000; ms += 7_000) await scene.later(7_000);
  expect((await scene.log(id)).status).toBe('IN_PROGRESS');
  await scene.later(30_000);
  expect(await scene.log(id)).toMatchObject({ status: 'FAILED', error_code: 'NodeSilent' });
  const retried = (await trigger()).body.backup_log_id;
  scene.host.up = true;
  await scene.later(30_000);
  await scene.later(2_000);
  expect(scene.operations.calls.slice(1)).toEqual([`cancel ${id}`, `backup ${retried}`]);
  expect((await scene.log(retried)).status).toBe('IN_PROGRESS');
});

it('fails an operation without progress on the node, except while it is queued', async () => {
  const id = await scene.backUp();
  for (let minutes = 0; minutes < 3; minutes += 1) await scene.later(60_000);
  expect(await scene.log(id)).toMatchObject({ status: 'IN_PROGRESS', stage: 'QUEUED' });
  scene.operations.progress(id, { stage: 'uploading' });
  await scene.later(2_000);
  await scene.later(119_999);
  expect((await scene.log(id)).status).toBe('IN_PROGRESS');
  await scene.later(2_000);
  expect((await scene.log(id)).status).toBe('FAILED');
  await scene.later(2_000);
  expect(scene.operations.get(id).stage).toBe('cancelled');
});

it('continues an operation after a downtime of any length', async () => {
  const id = await scene.backUp();
  scene.operations.progress(id, { stage: 'uploading', percent: 20 });
  await scene.later(2_000);
  await scene.market.clock.advance(3_600_000);
  scene.host.up = false;
  const restarted = await createCentral(scene.market.ports, {
    validators: [],
    signupCreditUusd: 0,
    verifyEmailAtSignup: true,
    trustedProxies: [],
  });
  await restarted.syncPods();
  expect((await scene.log(id)).status).toBe('IN_PROGRESS');
  scene.host.up = true;
  scene.operations.finish(id);
  await scene.market.clock.advance(10_000);
  await restarted.syncPods();
  expect((await scene.log(id)).status).toBe('COMPLETED');
  expect(await scene.eventsOf('backup')).toEqual(['requested', 'success']);
  await restarted.close();
});

it('delays an operation while the storage does not answer, then fails it', async () => {
  scene.storage.isUp = false;
  const id = await scene.backUp();
  expect(await scene.log(id)).toMatchObject({
    status: 'PENDING',
    status_message: 'The backup storage does not answer',
  });
  scene.storage.isUp = true;
  await scene.later(2_000);
  expect((await scene.log(id)).status).toBe('IN_PROGRESS');
  scene.operations.finish(id);
  await scene.later(2_000);
  scene.storage.isUp = false;
  const other = await scene.backUp();
  for (let minutes = 0; minutes < 2; minutes += 1) await scene.later(60_000);
  expect(await scene.log(other)).toMatchObject({
    status: 'FAILED',
    started_at: null,
    error_message: expect.stringContaining('The backup storage does not answer'),
  });
  expect(scene.operations.calls).toEqual([`backup ${id}`]);
});

it('fails an operation when its pod ends, also if the node is no longer polled', async () => {
  const id = await scene.backUp();
  await scene.remove(scene.podId);
  scene.host.up = false;
  await scene.later(1_000);
  const { db, clock } = scene.market.ports;
  const ended = { state: 'deleted', ended_at: clock.now() };
  await db.updateTable('pods').set(ended).where('id', '=', scene.podId).execute();
  await scene.tend(3_600_000);
  expect(await scene.log(id)).toMatchObject({ status: 'FAILED', error_code: 'PodGone' });
});
