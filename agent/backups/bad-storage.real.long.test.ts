/** Backups and restores with a storage that is damaged, read-only, full or missing, with the real restic. */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { OperationView } from '#shared/api/agent/operations.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { fill, mountSmallDisk } from '../../test/fakes/faults/small-disk.ts';
import {
  type BackupScene,
  createBackupScene,
  type SceneOptions,
} from '../../test/fakes/scenes/backup-scene.ts';
import type { OperationService } from './operation.service.ts';

const MIB = 1024 * 1024;
// restic runs at the lowest priority, so these tests take long on a busy machine.
vi.setConfig({ testTimeout: 180_000 });

let scene: BackupScene;
let service: OperationService;
const ends: (() => unknown)[] = [];

function open(options: SceneOptions = {}): void {
  scene = createBackupScene(options);
  service = scene.open();
}

beforeEach(() => open());
afterEach(async () => {
  await service.stop();
  for (const end of ends.splice(0).reverse()) await end();
  scene.close();
});

async function backUp(): Promise<OperationView> {
  const request = scene.backupRequest({ create_repository: false });
  service.beginBackup(scene.podId, request);
  return scene.ended(service, request.operation_id);
}

async function restore(
  { snapshot_id: snapshot }: OperationView,
  change: Parameters<BackupScene['restoreRequest']>[1] = {},
): Promise<OperationView> {
  const request = scene.restoreRequest(snapshot ?? '', { target_path: '/data/again', ...change });
  service.beginRestore(scene.podId, request);
  return scene.ended(service, request.operation_id);
}

/** Packs of the repository, the smallest first: trees have another pack than files. */
function packs(): string[] {
  const folder = join(scene.location, 'data');
  return readdirSync(folder)
    .flatMap((part) => readdirSync(join(folder, part)).map((name) => join(folder, part, name)))
    .toSorted((a, b) => statSync(a).size - statSync(b).size);
}

function flip(path: string, at: number): void {
  const bytes = readFileSync(path);
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  chmodSync(path, 0o600);
  writeFileSync(path, bytes);
}

/** Writes files of a MiB each, with the separator of restic's reports in their names. */
function writeFiles(): string[] {
  const names = ['one', 'two: 2', 'three', 'four'];
  mkdirSync(join(scene.volume, 'sub'));
  for (const name of names) writeFileSync(join(scene.volume, name), randomBytes(MIB));
  writeFileSync(join(scene.volume, 'sub', 'inner'), 'inner');
  return names;
}

it('reports damage of stored files with the next backup, and restores everything else', async () => {
  const names = writeFiles();
  const first = await backUp();
  expect(first).toMatchObject({ stage: 'done', damage: null });
  flip(packs().at(-1) ?? '', 2 * MIB + 4_321);
  const next = await backUp();
  expect(next).toMatchObject({ stage: 'done', quality: 'full' });
  expect(next.damage).toMatch(/^Backups are damaged in the storage: /);

  const refused = await restore(next);
  expect(refused).toMatchObject({ stage: 'failed', error: { code: 'RepositoryCorrupt' } });
  expect(refused.lost_files).toBeNull();
  expect(readdirSync(scene.volume)).not.toContain('again');

  const salvaged = await restore(next, { salvage: true });
  expect(salvaged).toMatchObject({ stage: 'done', error: null });
  const [lost = '', ...others] = names.filter(
    (name) => !readdirSync(join(scene.volume, 'again')).includes(name),
  );
  expect(others).toEqual([]);
  expect(salvaged.lost_files).toEqual({ count: 1, paths: [`/data/again/${lost}`] });
  expect(salvaged.log.join('\n')).toContain(`Missing: /data/again/${lost}`);
  for (const name of [...names, 'sub/inner'].filter((each) => each !== lost)) {
    const copy = readFileSync(join(scene.volume, 'again', name));
    expect(copy.equals(readFileSync(join(scene.volume, name))), name).toBe(true);
  }
});

it('reports a folder whose list is damaged, and restores the other folders', async () => {
  writeFiles();
  const first = await backUp();
  // The list of `sub` is the first in the pack, because restic stores inner folders first.
  flip(packs()[0] ?? '', 40);
  const next = await backUp();
  expect(next).toMatchObject({ stage: 'failed', error: { code: 'RepositoryCorrupt' } });
  expect(next.error?.message).not.toMatch(/\.go:|goroutine|\n/);
  const salvaged = await restore(first, { salvage: true });
  expect(salvaged).toMatchObject({
    stage: 'done',
    lost_files: { count: 1, paths: ['/data/again/sub'] },
  });
  expect(readdirSync(join(scene.volume, 'again')).toSorted()).toEqual(
    ['four', 'one', 'sub', 'three', 'two: 2'].toSorted(),
  );
  expect(readFileSync(join(scene.volume, 'again/one'))).toEqual(
    readFileSync(join(scene.volume, 'one')),
  );
});

it('reports a missing file of the storage with the next backup', async () => {
  writeFiles();
  await backUp();
  rmSync(packs().at(-1) ?? '');
  const next = await backUp();
  expect(next).toMatchObject({ stage: 'done' });
  expect(next.damage).toMatch(/does not exist$/);
});

it('restores a whole backup with `salvage`, and lists no lost file', async () => {
  writeFiles();
  const view = await restore(await backUp(), { salvage: true });
  expect(view).toMatchObject({ stage: 'done', lost_files: { count: 0, paths: [] } });
});

it('restores from a storage that is read-only, and reports that it accepts no backup', async () => {
  writeFiles();
  const kept = await backUp();
  execFileSync('mount', ['--bind', scene.location, scene.location]);
  ends.push(() => execFileSync('umount', [scene.location]));
  execFileSync('mount', ['-o', 'remount,bind,ro', scene.location]);
  const refused = await backUp();
  expect(refused).toMatchObject({
    stage: 'failed',
    error: {
      code: 'RepositoryAuth',
      message: expect.stringMatching(/^The storage of backups is read-only/),
    },
  });
  expect(await restore(kept)).toMatchObject({ stage: 'done', error: null });
  expect(readFileSync(join(scene.volume, 'again/one'))).toEqual(
    readFileSync(join(scene.volume, 'one')),
  );
});

it('reports while a backup waits that the storage is full', async () => {
  const disk = mountSmallDisk(24);
  ends.push(disk.close);
  await service.stop();
  scene.close();
  open({ location: join(disk.folder, 'repository') });
  fill(disk.folder, 2);
  writeFileSync(join(scene.volume, 'random'), randomBytes(20 * MIB));
  const request = scene.backupRequest({ create_repository: false });
  service.beginBackup(scene.podId, request);
  const seen = await eventually(
    'the obstacle, or the end',
    () => {
      const view = service.get(request.operation_id);
      return view.obstacle !== null || view.finished_ms !== null ? view : null;
    },
    60_000,
  );
  expect(seen.error?.message ?? seen.obstacle).toMatch(/^The storage of backups is full/);
  service.cancel(request.operation_id);
  await scene.ended(service, request.operation_id);
});

it('reports that the storage no longer contains the backups', async () => {
  writeFiles();
  const kept = await backUp();
  const aside = join(scene.folder, 'aside');
  renameSync(scene.location, aside);
  for (const view of [await backUp(), await restore(kept)]) {
    expect(view).toMatchObject({
      stage: 'failed',
      error: {
        code: 'RepositoryMissing',
        message: expect.stringMatching(/^The backups are not in the storage/),
      },
    });
  }
});
