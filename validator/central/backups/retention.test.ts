/** Deletion, expiry and cleanup of backups. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { naiveUtc } from '#shared/runtime/clock.ts';
import {
  type BackupScene,
  createBackupScene,
} from '../../../test/fakes/scenes/central-backup-scene.ts';

const DAY_MS = 86_400_000;

let scene: BackupScene;
beforeEach(async () => {
  scene = await createBackupScene();
});
afterEach(() => scene.close());

const remove = (id: string) => scene.call('DELETE', `/backup-logs/${id}`);
const trigger = () => scene.call('POST', `/pods/${scene.podId}/backup`, {});
const digits = (...kept: string[]) => kept.map((digit) => digit.repeat(64));

it('deletes a backup at once and frees its space later', async () => {
  const [first, second] = [await scene.backedUp('a'), await scene.backedUp('b')];
  expect(await remove(first)).toMatchObject({
    status: 200,
    body: { status: 'DELETED', deletion_state: 'PENDING', physical_cleanup_at: null },
  });
  expect(scene.storage.pruned).toEqual([]);
  await scene.tend();
  expect(scene.storage.pruned).toEqual([digits('b')]);
  expect(await scene.log(first)).toMatchObject({
    deletion_state: 'DONE',
    physical_cleanup_at: naiveUtc(scene.market.clock.now()),
  });
  expect((await remove(first)).body.deletion_state).toBe('DONE');
  await scene.tend();
  expect(scene.storage.pruned).toHaveLength(1);
  // The repository is removed with its last backup, and the next backup creates it again.
  await remove(second);
  await scene.tend();
  expect(scene.storage.removed).toHaveLength(1);
  const next = await scene.backUp();
  expect(scene.operations.requests.get(next)).toMatchObject({ create_repository: true });
});

it('refuses to delete a running backup', async () => {
  const id = await scene.backUp();
  const { status, body } = await remove(id);
  expect([status, body.error.code]).toEqual([400, 'bad_request']);
  scene.operations.fail(id, { code: 'PathMissing', message: 'no such folder' });
  await scene.later(2_000);
  expect((await remove(id)).body).toMatchObject({ status: 'DELETED', deletion_state: 'DONE' });
});

it('expires a backup after its retention days, and removes its data after seven further days of running time', async () => {
  const [first] = [await scene.backedUp('a'), await scene.backedUp('b')];
  await scene.tend(30 * DAY_MS - 2_001);
  expect((await scene.log(first)).status).toBe('COMPLETED');
  await scene.tend(1);
  expect(await scene.log(first)).toMatchObject({ status: 'EXPIRED', deletion_state: 'PENDING' });
  // A deletion in the same repository does not remove the data of the expired backup either.
  await remove(await scene.backedUp('c'));
  await scene.tend();
  expect(scene.storage.pruned).toEqual([digits('a', 'b')]);
  await scene.tend(7 * DAY_MS - 60_000);
  expect(scene.storage.pruned).toHaveLength(1);
  await scene.tend(60_000);
  await scene.tend();
  expect(await scene.log(first)).toMatchObject({ status: 'EXPIRED', deletion_state: 'DONE' });
  expect(scene.storage.removed).toHaveLength(1);
});

it('reports that the data of single backups cannot be removed without restic', async () => {
  scene.storage.pruning = Promise.resolve(false);
  const [first, second] = [await scene.backedUp('a'), await scene.backedUp('b')];
  await remove(first);
  await scene.tend();
  expect(await scene.log(first)).toMatchObject({
    status: 'DELETED',
    deletion_state: 'BLOCKED',
    physical_cleanup_at: null,
    status_message: expect.stringContaining('restic is not installed'),
  });
  await remove(second);
  await scene.tend();
  expect(await scene.log(first)).toMatchObject({ deletion_state: 'DONE', status_message: null });
});

it('delays a cleanup while the repository is in use, and blocks operations during a cleanup', async () => {
  const [first] = [await scene.backedUp('a'), await scene.backedUp('b')];
  const running = await scene.backUp();
  await remove(first);
  await scene.tend();
  expect(scene.storage.pruned).toEqual([]);
  scene.operations.finish(running, 'c');
  await scene.later(2_000);
  const pruning = Promise.withResolvers<boolean>();
  scene.storage.pruning = pruning.promise;
  const cleaning = scene.tend();
  await expect.poll(() => scene.storage.pruned).toEqual([digits('b', 'c')]);
  const { status, body } = await trigger();
  expect([status, body.error.code, body.detail.active_operation_id]).toEqual([
    409,
    'BACKUP_STORAGE_BUSY',
    null,
  ]);
  pruning.resolve(true);
  await cleaning;
  expect((await trigger()).status).toBe(200);
});

it('repeats a cleanup after a failure and after a crash', async () => {
  const id = await scene.backedUp();
  await remove(id);
  scene.storage.isUp = false;
  await scene.tend();
  expect((await scene.log(id)).deletion_state).toBe('PENDING');
  const { db } = scene.market.ports;
  await db.updateTable('backup_repositories').set({ cleaning_boot_id: 'a dead one' }).execute();
  scene.storage.isUp = true;
  await scene.tend();
  expect((await scene.log(id)).deletion_state).toBe('DONE');
  expect((await trigger()).status).toBe(200);
});

it('retains a backup of a deleted pod until it expires, then removes the repository', async () => {
  const id = await scene.backedUp();
  await scene.remove(scene.podId);
  await scene.market.sync();
  await scene.tend(29 * DAY_MS);
  expect(scene.storage.removed).toEqual([]);
  await scene.tend(DAY_MS);
  expect(scene.storage.removed).toEqual([]);
  await scene.tend(7 * DAY_MS);
  expect(scene.storage.removed).toHaveLength(1);
  expect(await scene.log(id)).toMatchObject({ status: 'EXPIRED', deletion_state: 'DONE' });
  await scene.tend(DAY_MS);
  expect(scene.storage.removed).toHaveLength(1);
});
