/** Restore drills with the real restic: their reports, and that drills change no data. */
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { OperationView } from '#shared/api/agent/operations.ts';
import { fingerprintOf } from '../../test/fakes/mixed-tree.ts';
import { type BackupScene, createBackupScene } from '../../test/fakes/scenes/backup-scene.ts';
import type { OperationService } from './operation.service.ts';

const MIB = 1024 * 1024;
// restic runs at the lowest priority, so these tests take long on a busy machine.
vi.setConfig({ testTimeout: 180_000 });

let scene: BackupScene;
let service: OperationService;
beforeEach(() => {
  scene = createBackupScene();
  service = scene.open();
});
afterEach(async () => {
  await service.stop();
  scene.close();
});

async function backUp(): Promise<string> {
  const request = scene.backupRequest();
  service.beginBackup(scene.podId, request);
  return (await scene.ended(service, request.operation_id)).snapshot_id ?? '';
}

async function verify(
  snapshot: string,
  change: Parameters<BackupScene['verifyRequest']>[1] = {},
): Promise<OperationView> {
  const request = scene.verifyRequest(snapshot, change);
  service.beginVerify(scene.podId, request);
  return scene.ended(service, request.operation_id);
}

const failure = ({ stage, error }: OperationView) => [stage, error?.code];

it('restores a sample of a valid backup, with any file names and without the pod', async () => {
  const odd = ['with space', 'neue\nzeile', '-dash', '*?[glob]', 'back\\slash', '"quoted"', 'ü'];
  mkdirSync(join(scene.volume, 'inner', '**'), { recursive: true });
  for (const name of odd) writeFileSync(join(scene.volume, 'inner', '**', name), name);
  writeFileSync(join(scene.volume, 'random'), randomBytes(2 * MIB));
  chmodSync(join(scene.volume, 'random'), 0o4711);
  utimesSync(join(scene.volume, 'random'), 1_000_000_000.123, 1_000_000_000.123);
  linkSync(join(scene.volume, 'random'), join(scene.volume, 'hard link'));
  symlinkSync('/etc/hostname', join(scene.volume, 'link out'));
  const snapshot = await backUp();
  const before = [fingerprintOf(scene.volume), fingerprintOf(scene.location)];

  const done = await verify(snapshot);
  const bytes = odd.reduce((sum, name) => sum + Buffer.byteLength(name), 4 * MIB);
  expect(done).toMatchObject({
    kind: 'verify',
    stage: 'done',
    percent: 100,
    error: null,
    total_files: 9,
    processed_files: 9,
    total_bytes: bytes,
    processed_bytes: bytes,
  });
  expect(done.log.join('\n')).toContain(`Reading back 9 of 9 files, ${bytes} bytes`);
  expect(readdirSync(dirname(scene.volume)), 'nothing beside the volume').toEqual(['_data']);

  scene.pod.state = () => 'gone';
  const sample = { seed: 'x', max_files: 3, max_bytes: 3 * MIB };
  const gone = await verify(snapshot, { sample });
  expect(gone).toMatchObject({ stage: 'done', total_files: 3 });
  expect(gone.total_bytes).toBeGreaterThan(2 * MIB);
  expect(readdirSync(join(scene.folder, 'scratch'))).toEqual([]);
  expect([fingerprintOf(scene.volume), fingerprintOf(scene.location)]).toEqual(before);
  expect(JSON.stringify(service.list())).not.toContain(scene.folder);
});

/** Returns the pack file that contains most of the data. */
function largestPack(): string {
  const folder = join(scene.location, 'data');
  const packs = readdirSync(folder).flatMap((part) =>
    readdirSync(join(folder, part)).map((name) => join(folder, part, name)),
  );
  return packs.toSorted((a, b) => statSync(b).size - statSync(a).size)[0] ?? '';
}

it('reports why a backup cannot be restored, and changes nothing', async () => {
  writeFileSync(join(scene.volume, 'random'), randomBytes(MIB));
  const snapshot = await backUp();
  const volume = fingerprintOf(scene.volume);

  const pack = largestPack();
  const bytes = readFileSync(pack);
  const flipped = Buffer.from(bytes);
  flipped[MIB / 2] = (flipped[MIB / 2] ?? 0) ^ 1;
  chmodSync(pack, 0o600);
  writeFileSync(pack, flipped);
  const before = fingerprintOf(scene.location);
  const damaged = await verify(snapshot);
  expect(failure(damaged)).toEqual(['failed', 'RepositoryCorrupt']);
  expect(damaged.error?.message).not.toBe('');
  expect(fingerprintOf(scene.location)).toEqual(before);

  renameSync(pack, join(scene.folder, 'pack'));
  const missing = await verify(snapshot);
  expect(failure(missing)).toEqual(['failed', 'RepositoryCorrupt']);
  expect(missing.error?.message).toContain('does not exist');
  renameSync(join(scene.folder, 'pack'), pack);
  writeFileSync(pack, bytes);

  const wrong = { ...scene.repository, password: 'another-password-of-16' };
  expect(failure(await verify(snapshot, { repository: wrong }))[1]).toBe('RepositoryAuth');
  expect(failure(await verify('f'.repeat(64)))[1]).toBe('SnapshotMissing');
  renameSync(scene.location, join(scene.folder, 'elsewhere'));
  expect(failure(await verify(snapshot))[1]).toBe('RepositoryMissing');
  expect(existsSync(scene.location), 'the drill creates no repository').toBe(false);
  expect(fingerprintOf(scene.volume)).toEqual(volume);
  expect(readdirSync(dirname(scene.volume))).toEqual(['_data']);
  expect(JSON.stringify(service.list())).not.toContain('another-password');
});
