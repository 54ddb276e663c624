/** Backups with the real restic that continue after a kill of their agent. */
import { randomBytes } from 'node:crypto';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { OperationView } from '#shared/api/agent/operations.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { type BackupScene, createBackupScene } from '../../test/fakes/scenes/backup-scene.ts';
import type { OperationService } from './operation.service.ts';

const MIB = 1024 * 1024;
// restic runs at the lowest priority, so these tests take long on a busy machine.
vi.setConfig({ testTimeout: 180_000 });

let scene: BackupScene;
const services: OperationService[] = [];
beforeEach(() => {
  scene = createBackupScene();
});
afterEach(async () => {
  for (const service of services.splice(0)) await service.stop();
  scene.close();
});

function opened(program?: string): OperationService {
  const service = scene.open(program === undefined ? {} : { program });
  services.push(service);
  return service;
}

/** Creates a restic that is limited to 2 MiB a second. */
function slowRestic(): string {
  const program = join(scene.folder, 'slow-restic');
  const script = `#!/bin/sh\nexec restic --limit-upload 2048 --limit-download 2048 "$@"\n`;
  writeFileSync(program, script);
  chmodSync(program, 0o755);
  return program;
}

const sending = (view: OperationView) =>
  view.stage === 'uploading' && (view.processed_bytes ?? 0) > 0;

it('continues a backup after its agent was killed, under the same id', async () => {
  writeFileSync(join(scene.volume, 'random'), randomBytes(16 * MIB));
  const service = opened(slowRestic());
  const request = scene.backupRequest();
  service.beginBackup(scene.podId, request);
  await eventually('the upload', () => sending(service.get(request.operation_id)));
  await service.stop();
  expect(scene.store.get(request.operation_id)).toMatchObject({ stage: 'uploading', attempts: 1 });
  const next = opened();
  next.start();
  const view = await scene.ended(next, request.operation_id);
  expect(view).toMatchObject({ stage: 'done', quality: 'full' });
  expect(next.beginBackup(scene.podId, request), 'a repeat').toEqual(view);
});
