/** State on disk after a power cut right after a step of an update, when the page cache is lost. */
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { readPrivateFile, replacePrivateFile, syncFolder } from '#shared/runtime/files.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { openSqlite } from '#shared/runtime/sqlite.ts';
import { type CutDisk, mountCutDisk } from '../../test/fakes/faults/cut-disk.ts';
import { digestOf, NOW_MS } from '../../test/fixtures/update-manifest.ts';
import { openDatabase, SCHEMA, STORE_FILE, schemaOf } from '../database/database.ts';
import { createReleaseTree, releaseNameOf } from './release-tree.ts';
import { NO_UPDATE } from './update.state.ts';
import { createStoreCopy, createUpdateStore } from './update.store.ts';

const DISK_MIB = 16;
const TARGET = { sequence: 7, digest: digestOf('b') };
const NEW = releaseNameOf(TARGET);

let disk: CutDisk;
beforeEach(() => {
  disk = mountCutDisk(DISK_MIB);
  mkdirSync(join(disk.folder, 'releases/old'), { recursive: true });
  symlinkSync('releases/old', join(disk.folder, 'current'));
  for (const path of ['releases/old', 'releases', '.']) syncFolder(join(disk.folder, path));
});
afterEach(() => disk.close());

/** Returns the current release after a reboot, and the release to roll back to. */
const found = () =>
  disk.afterCut((folder) => {
    const tree = createReleaseTree(folder);
    const [current, before] = [tree.current(), tree.before()];
    return { current, before, isOnTrial: tree.isOnTrial(), accepted: tree.accepted() };
  });

it('loses a file that was not synced before the power cut', () => {
  writeFileSync(join(disk.folder, 'file'), 'text');
  expect(disk.afterCut((folder) => readdirSync(folder))).not.toContain('file');
});

it('retains every completed step of a switch or rollback after a power cut', () => {
  const tree = createReleaseTree(disk.folder);
  tree.accept({ ...TARGET, trust: null });
  expect(found()).toEqual({
    current: 'old',
    before: null,
    isOnTrial: false,
    accepted: { ...TARGET, trust: null },
  });
  tree.openDraft();
  tree.keepDraft(TARGET, NOW_MS);
  expect(disk.afterCut((folder) => readdirSync(join(folder, 'releases')))).toContain(NEW);
  tree.switchTo(TARGET, 'old');
  expect(found()).toMatchObject({ current: NEW, before: 'old', isOnTrial: true });
  tree.switchBack();
  expect(found()).toMatchObject({ current: 'old', before: 'old', isOnTrial: true });
  tree.switchTo(TARGET, 'old');
  tree.prove();
  expect(found()).toMatchObject({ current: NEW, before: 'old', isOnTrial: false });
});

it('renames a release before it removes the files', () => {
  const tree = createReleaseTree(disk.folder);
  const old = { sequence: 1, digest: digestOf('a') };
  tree.openDraft();
  tree.keepDraft(old, NOW_MS);
  tree.drop(old);
  const names = disk.afterCut((folder) => readdirSync(join(folder, 'releases')));
  expect(names).not.toContain(releaseNameOf(old));
});

it('retains the copy of the store, and the restored store, after a power cut', () => {
  const path = join(disk.folder, STORE_FILE);
  openDatabase(path).close();
  const copy = createStoreCopy(path, SCHEMA);
  copy.make(TARGET);
  const names = disk.afterCut((folder) => readdirSync(folder));
  expect(names).toContain(`${STORE_FILE}.before-7-${TARGET.digest.slice(7, 19)}`);
  const newer = openSqlite(path);
  newer.exec(`UPDATE meta SET value = '${SCHEMA + 1}' WHERE name = 'schema'`);
  createUpdateStore(newer).put({ ...NO_UPDATE, sequence: 7 });
  newer.close();
  copy.restoreIfNewer(TARGET);
  const restored = disk.afterCut((folder) => {
    const database = openSqlite(join(folder, STORE_FILE));
    const row = createUpdateStore(database).get();
    const schema = schemaOf(database);
    database.close();
    return { schema, sequence: row.sequence };
  });
  expect(restored).toEqual({ schema: SCHEMA, sequence: 7 });
});

it('retains a replaced secret completely after a power cut', () => {
  replacePrivateFile(join(disk.folder, 'secret'), 'new', systemRandom);
  const text = disk.afterCut((folder) => readPrivateFile(join(folder, 'secret')));
  expect(Buffer.from(text ?? '').toString()).toBe('new');
});
