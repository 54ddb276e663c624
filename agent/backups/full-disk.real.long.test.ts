/** Disks that fill up during backups and restores: no data is lost, and temporary files are removed. */
import { randomBytes } from 'node:crypto';
import { chmodSync, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { eventually } from '../../test/fakes/eventually.ts';
import { fill, mountSmallDisk } from '../../test/fakes/faults/small-disk.ts';
import { fingerprintOf } from '../../test/fakes/mixed-tree.ts';
import {
  type BackupScene,
  createBackupScene,
  type SceneOptions,
} from '../../test/fakes/scenes/backup-scene.ts';
import { type GatedScene, startGatedScene } from '../../test/fakes/scenes/gated-scene.ts';
import type { OperationService } from './operation.service.ts';

const MIB = 1024 * 1024;

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

function smallDisk(mib: number): string {
  const disk = mountSmallDisk(mib);
  ends.push(disk.close);
  return disk.folder;
}

function opened(scene: BackupScene, program?: string): OperationService {
  const service = scene.open(program === undefined ? {} : { program });
  ends.push(() => service.stop());
  return service;
}

async function backUp(scene: BackupScene, service: OperationService) {
  const request = scene.backupRequest({ create_repository: false });
  service.beginBackup(scene.podId, request);
  return scene.ended(service, request.operation_id);
}

async function gatedScene(options: SceneOptions = {}): Promise<GatedScene> {
  const gated = await startGatedScene(options);
  ends.push(gated.close);
  return gated;
}

it('completes a backup when the repository has space again', async () => {
  const { scene, gate, disk } = await gatedScene();
  writeFileSync(join(scene.volume, 'random'), randomBytes(2 * MIB));
  const tree = fingerprintOf(scene.volume);
  let refused = 0;
  gate.watch((call, moment) => {
    if (call !== 'POST data') return;
    refused += moment === 'after' ? 1 : 0;
    disk.freeBytes = refused < 2 ? 0 : 1024 ** 4;
  });
  expect(await backUp(scene, opened(scene))).toMatchObject({ stage: 'done', quality: 'full' });
  expect(refused).toBeGreaterThan(2);
  expect(scene.restic('check', '--read-data')).toContain('no errors were found');
  expect(fingerprintOf(scene.volume)).toEqual(tree);
});

it("reports that the host's disk is full during a backup, and backs up once it has space", async () => {
  const scene = createBackupScene();
  ends.push(() => scene.close());
  writeFileSync(join(scene.volume, 'random'), randomBytes(2 * MIB));
  const tree = fingerprintOf(scene.volume);
  const scratch = smallDisk(1);
  fill(scratch);
  const program = join(scene.folder, 'full-restic');
  writeFileSync(program, `#!/bin/sh\nTMPDIR='${scratch}' exec restic "$@"\n`);
  chmodSync(program, 0o755);
  const full = await backUp(scene, opened(scene, program));
  expect(full).toMatchObject({ stage: 'failed', error: { code: 'NoSpace' } });
  expect(fingerprintOf(scene.volume)).toEqual(tree);
  expect(scene.restic('snapshots', '--json').trim()).toMatch(/^(null|\[\])$/);
  expect((await backUp(scene, opened(scene))).stage).toBe('done');
});

/** Prepares a restore with the agent's database on the same small disk. */
async function restoredOnSmallDisk() {
  const folder = smallDisk(112);
  const { scene, gate } = await gatedScene({ folder: join(folder, 'scene') });
  const service = opened(scene);
  writeFileSync(join(scene.volume, 'random'), randomBytes(12 * MIB));
  const kept = await backUp(scene, service);
  expect(kept.stage).toBe('done');
  rmSync(join(scene.volume, 'random'));
  writeFileSync(join(scene.volume, 'file'), 'of the pod');
  const tree = fingerprintOf(scene.volume);
  const request = scene.restoreRequest(kept.snapshot_id ?? '');
  return {
    folder,
    scene,
    service,
    tree,
    view: () => service.get(request.operation_id),
    ended: () => scene.ended(service, request.operation_id),
    /** Begins the restore, and fills the disk after the size check, while files are fetched. */
    begin(leftMib: number): void {
      gate.watch((call, moment, nth) => {
        if (call === 'GET data' && moment === 'after' && nth === 5) fill(folder, leftMib);
      });
      service.beginRestore(scene.podId, request);
    },
  };
}

it('leaves pod and disk unchanged when a restore fills the disk', async () => {
  const { folder, scene, service, tree, begin, ended } = await restoredOnSmallDisk();
  begin(2);
  expect(await ended()).toMatchObject({ stage: 'failed', error: { code: 'NoSpace' } });
  expect(readdirSync(dirname(scene.volume))).toEqual(['_data']);
  expect(fingerprintOf(scene.volume)).toEqual(tree);
  rmSync(join(folder, 'filler'));
  expect((await backUp(scene, service)).stage).toBe('done');
});

it('continues a restore after its row could not be written', async () => {
  const { folder, scene, service, tree, begin, ended, view } = await restoredOnSmallDisk();
  begin(0);
  const filled = () => statfsSync(folder).bavail === 0;
  const isTidy = () => readdirSync(dirname(scene.volume)).length === 1;
  await eventually('the removal of restored files from the full disk', () => filled() && isTidy());
  expect(view().finished_ms).toBeNull();
  expect(fingerprintOf(scene.volume)).toEqual(tree);
  rmSync(join(folder, 'filler'));
  expect((await ended()).stage).toBe('done');
  expect(readdirSync(scene.volume)).toEqual(['random']);
  expect((await backUp(scene, service)).stage).toBe('done');
});

it('refuses to begin a restore that exceeds the free disk space', async () => {
  const folder = smallDisk(64);
  const scene = createBackupScene({ folder: join(folder, 'scene') });
  ends.push(() => scene.close());
  const service = opened(scene);
  writeFileSync(join(scene.volume, 'file'), 'kept');
  const kept = await backUp(scene, service);
  const request = scene.restoreRequest(kept.snapshot_id ?? '');
  service.beginRestore(scene.podId, request);
  const view = await scene.ended(service, request.operation_id);
  expect(view.error).toMatchObject({
    code: 'NoSpace',
    message: expect.stringMatching(/^Restoring needs \d+ bytes, \d+ bytes are free/),
  });
  expect(readdirSync(dirname(scene.volume))).toEqual(['_data']);
});
