/** Backups and restores with the real restic. */

import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import type { OperationView } from '#shared/api/agent/operations.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import {
  allocatedBytes,
  changeMixedTree,
  fingerprintOf,
  writeMixedTree,
} from '../../test/fakes/mixed-tree.ts';
import {
  type BackupScene,
  createBackupScene,
  PASSWORD,
  type SceneOptions,
} from '../../test/fakes/scenes/backup-scene.ts';
import type { OperationService } from './operation.service.ts';

const MIB = 1024 * 1024;
// restic runs at the lowest priority, so these tests take long on a busy machine.
vi.setConfig({ testTimeout: 180_000 });

const scenes: BackupScene[] = [];
const services: OperationService[] = [];

function newScene(options: SceneOptions = {}): BackupScene {
  const scene = createBackupScene(options);
  scenes.push(scene);
  return scene;
}

function opened(scene: BackupScene, program?: string): OperationService {
  const service = scene.open(program === undefined ? {} : { program });
  services.push(service);
  return service;
}

afterEach(async () => {
  for (const service of services.splice(0)) await service.stop();
  for (const scene of scenes.splice(0)) scene.close();
});

async function backUp(
  scene: BackupScene,
  service: OperationService,
  change: Parameters<BackupScene['backupRequest']>[0] = {},
): Promise<OperationView> {
  const request = scene.backupRequest(change);
  service.beginBackup(scene.podId, request);
  return scene.ended(service, request.operation_id);
}

async function restore(
  scene: BackupScene,
  service: OperationService,
  snapshot: string | null,
  change: Parameters<BackupScene['restoreRequest']>[1] = {},
): Promise<OperationView> {
  const request = scene.restoreRequest(snapshot ?? '', change);
  service.beginRestore(scene.podId, request);
  return scene.ended(service, request.operation_id);
}

it('backs up twice and restores each backup to an identical tree', async () => {
  const scene = newScene();
  const service = opened(scene);
  const tree = join(scene.volume, 'work');
  writeMixedTree(tree);
  const before = fingerprintOf(tree);
  const first = await backUp(scene, service, { path: '/data/work' });
  expect(first).toMatchObject({ stage: 'done', quality: 'full', percent: 100, error: null });
  expect(first.processed_bytes).toBeGreaterThan(30 * MIB);
  expect(before).toContain('attributes: kept');
  const sizeBefore = Number(
    /"total_size":(\d+)/.exec(scene.restic('stats', '--mode', 'raw-data', '--json'))?.[1],
  );

  changeMixedTree(tree);
  const after = fingerprintOf(tree);
  const second = await backUp(scene, service, { path: '/data/work', create_repository: false });
  expect(second).toMatchObject({ stage: 'done', quality: 'full' });
  const sizeAfter = Number(
    /"total_size":(\d+)/.exec(scene.restic('stats', '--mode', 'raw-data', '--json'))?.[1],
  );
  // For each of the two changes, restic stores a new chunk of half a MiB to 8 MiB.
  expect(sizeAfter - sizeBefore).toBeLessThan(12 * MIB);

  writeFileSync(join(tree, 'later'), 'goes with the old tree');
  expect(
    await restore(scene, service, first.snapshot_id, { target_path: '/data/work' }),
  ).toMatchObject({ stage: 'done', percent: 100 });
  expect(fingerprintOf(tree)).toEqual(before);
  expect(allocatedBytes(join(tree, 'sparse'))).toBeLessThan(MIB);

  const aside = { target_path: '/data/copies/second', mode: 'new_only' } as const;
  expect(await restore(scene, service, second.snapshot_id, aside)).toMatchObject({ stage: 'done' });
  expect(fingerprintOf(join(scene.volume, 'copies/second'))).toEqual(after);
  expect(await restore(scene, service, second.snapshot_id, aside)).toMatchObject({
    stage: 'failed',
    error: { code: 'TargetNotEmpty' },
  });
  expect(readdirSync(dirname(scene.volume)), 'temporary files beside the volume').toEqual([
    '_data',
  ]);
  expect(scene.restic('list', 'locks')).toBe('');
  expect(JSON.stringify(service.list())).not.toContain(scene.volume);
  expect(scene.store.get(second.id)?.sealed_repository).toBeNull();
});

it('finds no fault in an existing repository without data', async () => {
  const scene = newScene();
  writeFileSync(join(scene.volume, 'file'), 'first');
  const first = await backUp(scene, opened(scene), { create_repository: false });
  expect(first).toMatchObject({ stage: 'done', damage: null });
  expect(first.log.join()).not.toContain('could not be checked');
});

it('reports why a backup or restore failed', async () => {
  const scene = newScene({ made: false });
  const service = opened(scene);
  writeFileSync(join(scene.volume, 'file'), randomBytes(MIB));
  const missing = await backUp(scene, service, { create_repository: false });
  expect(missing).toMatchObject({ stage: 'failed', error: { code: 'RepositoryMissing' } });
  const good = await backUp(scene, service);
  const { repository, location } = scene;

  const wrong = { repository: { ...repository, password: 'another-password-of-16' } };
  const denied = await backUp(scene, service, wrong);
  expect(denied).toMatchObject({ stage: 'failed', error: { code: 'RepositoryAuth' } });
  expect(JSON.stringify(denied)).not.toContain('another-password');
  const nowhere = { repository: { ...repository, location: 'rest:http://127.0.0.1:1/x/' } };
  expect((await backUp(scene, service, nowhere)).error?.code).toBe('RepositoryUnreachable');
  expect((await restore(scene, service, 'f'.repeat(64))).error?.code).toBe('SnapshotMissing');
  const absent = await backUp(scene, opened(scene, join(scene.folder, 'no-restic')));
  expect(absent.error).toMatchObject({
    code: 'EngineFailed',
    message: expect.stringContaining('not installed'),
  });

  for (const folder of readdirSync(join(location, 'data'))) {
    for (const name of readdirSync(join(location, 'data', folder))) {
      const pack = join(location, 'data', folder, name);
      chmodSync(pack, 0o600);
      const bytes = readFileSync(pack);
      bytes.fill(0, 40, 120);
      writeFileSync(pack, bytes);
    }
  }
  const before = fingerprintOf(scene.volume);
  const corrupt = await restore(scene, service, good.snapshot_id);
  expect(corrupt).toMatchObject({ stage: 'failed', error: { code: 'RepositoryCorrupt' } });
  expect(fingerprintOf(scene.volume)).toEqual(before);
  expect(JSON.stringify(service.list())).not.toContain(PASSWORD);
});

it('refuses paths outside the volume, by name or by link', async () => {
  const scene = newScene();
  const service = opened(scene);
  mkdirSync(join(scene.volume, 'folder'));
  writeFileSync(join(scene.volume, 'folder', 'file'), 'mine');
  symlinkSync('/etc', join(scene.volume, 'etc'));
  symlinkSync('folder', join(scene.volume, 'alias'));
  for (const path of ['/etc', '/database', '/data/etc', '/data/etc/hostname', '/data/alias/file']) {
    expect((await backUp(scene, service, { path })).error?.code, path).toBe('PathRefused');
  }
  expect((await backUp(scene, service, { path: '/data/none' })).error?.code).toBe('PathMissing');
  const file = await backUp(scene, service, { path: '/data/folder/file' });
  expect(file, 'one file').toMatchObject({ stage: 'done', total_files: 1 });
  const whole = await restore(scene, service, file.snapshot_id);
  expect(whole.error, 'a file for a volume').toMatchObject({ code: 'PathRefused' });
  const through = await restore(scene, service, file.snapshot_id, { target_path: '/data/etc/x' });
  expect(through.error?.code).toBe('PathRefused');
  expect(existsSync('/etc/x')).toBe(false);
});

it('reads the volume read-only and follows no link, even if the pod adds it during the backup', async () => {
  const scene = newScene();
  const secret = join(scene.folder, 'host-secrets');
  mkdirSync(secret);
  writeFileSync(join(secret, 'file'), 'secret of the host');
  symlinkSync(secret, join(scene.volume, 'link'));
  const program = join(scene.folder, 'curious-restic');
  const look = `cat '${scene.volume}/link/file' > '${scene.folder}/read' 2>&1; touch '${scene.volume}/touched'`;
  const script = `#!/bin/sh\ncase "$*" in backup*) ${look};; esac\nexec restic "$@"\n`;
  writeFileSync(program, script);
  chmodSync(program, 0o755);
  expect((await backUp(scene, opened(scene, program))).stage).toBe('done');
  expect(readFileSync(join(scene.folder, 'read'), 'utf8')).toContain('symbolic links');
  expect(existsSync(join(scene.volume, 'touched')), 'a backup can write there').toBe(false);
});

it('accepts a repeated request; rejects other content with the same id, and a second operation of the pod', async () => {
  const scene = newScene();
  const service = scene.open({ restic: neverEnding() });
  services.push(service);
  const request = scene.backupRequest();
  const view = service.beginBackup(scene.podId, request);
  expect(service.beginBackup(scene.podId, request).id).toBe(view.id);
  expect(() => service.beginBackup(scene.podId, { ...request, path: '/data/x' })).toThrow(
    /other content/,
  );
  expect(() => service.beginBackup(systemRandom.uuid(), request)).toThrow(/other content/);
  expect(() => service.beginBackup(scene.podId, scene.backupRequest())).toThrow(
    expect.objectContaining({
      code: 'BACKUP_STORAGE_BUSY',
      options: { details: { active_operation_id: request.operation_id } },
    }),
  );
  const rows = Array.from({ length: 3 }, () => {
    const other = scene.backupRequest();
    service.beginBackup(systemRandom.uuid(), other);
    return other.operation_id;
  });
  await eventually(
    'two at a time',
    () => rows.map((id) => service.get(id).stage).join() === 'preparing,queued,queued',
  );
});

/** Creates a restic whose `make` waits until it is aborted. */
function neverEnding(): ReturnType<typeof import('./restic.ts').createRestic> {
  const never = () => Promise.reject(new Error('not expected in this test'));
  return {
    checkVersion: async () => undefined,
    make: ({ signal }) => systemClock.sleep(600_000, signal),
    unlock: never,
    backup: never,
    statsOf: never,
    readTrees: never,
    restore: never,
    list: never,
    check: never,
  };
}
