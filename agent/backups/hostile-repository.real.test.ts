/**
 * Restores from a repository that an attacker with its password has changed: nothing outside the staged tree changes.
 */
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { rewriteFolders } from '../../test/fakes/external/hostile-repository.ts';
import { writeQuickRepository } from '../../test/fakes/external/quick-repository.ts';
import { fingerprintOf } from '../../test/fakes/mixed-tree.ts';
import { createBackupScene, PASSWORD } from '../../test/fakes/scenes/backup-scene.ts';

const NAME = 'name-of-a-file';

it.each([
  ['a file above the tree', '../../../../xx'],
  ['a file at an absolute path', '/tmp/podwright'],
])('refuses to restore %s', async (_what, name) => {
  const scene = createBackupScene({ made: false });
  const key = writeQuickRepository(scene.location, PASSWORD, 1);
  writeFileSync(join(scene.volume, NAME), 'content');
  const service = scene.open();
  const backup = scene.backupRequest();
  service.beginBackup(scene.podId, backup);
  expect((await scene.ended(service, backup.operation_id)).stage).toBe('done');
  const snapshot = rewriteFolders(scene.location, key, (text) => text.replace(NAME, name));
  const before = [fingerprintOf(scene.volume), readdirSync(scene.folder)];
  const restore = scene.restoreRequest(snapshot);
  service.beginRestore(scene.podId, restore);
  const view = await scene.ended(service, restore.operation_id);
  const { stage, error } = view;
  expect({ stage, code: error?.code }, view.log.join('\n')).toEqual({
    stage: 'failed',
    code: 'RepositoryCorrupt',
  });
  expect([fingerprintOf(scene.volume), readdirSync(scene.folder)]).toEqual(before);
  expect(readdirSync(dirname(scene.volume))).toEqual(['_data']);
  expect(existsSync('/tmp/podwright')).toBe(false);
  await service.stop();
  scene.close();
});

it('writes nothing through a link that has the name of a folder in the snapshot', async () => {
  const scene = createBackupScene({ made: false });
  const key = writeQuickRepository(scene.location, PASSWORD, 1);
  const outside = join(scene.folder, 'outside');
  mkdirSync(outside);
  symlinkSync(outside, join(scene.volume, 'aa'));
  mkdirSync(join(scene.volume, 'ab'));
  writeFileSync(join(scene.volume, 'ab', 'file'), 'content');
  const service = scene.open();
  const backup = scene.backupRequest();
  service.beginBackup(scene.podId, backup);
  await scene.ended(service, backup.operation_id);
  const snapshot = rewriteFolders(scene.location, key, (text) =>
    text.replace('"name":"ab"', '"name":"aa"'),
  );
  const before = fingerprintOf(scene.volume);
  const restore = scene.restoreRequest(snapshot);
  service.beginRestore(scene.podId, restore);
  expect((await scene.ended(service, restore.operation_id)).stage).toBe('failed');
  expect(readdirSync(outside)).toEqual([]);
  expect(fingerprintOf(scene.volume)).toEqual(before);
  await service.stop();
  scene.close();
});
