/** Restores into new folders of a running pod, with the real restic. */
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { OperationView } from '#shared/api/agent/operations.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { type BackupScene, createBackupScene } from '../../test/fakes/scenes/backup-scene.ts';
import type { OperationService } from './operation.service.ts';
import { pausesPod } from './operation.state.ts';

// restic runs at the lowest priority, so these tests take long on a busy machine.
vi.setConfig({ testTimeout: 180_000 });

let scene: BackupScene;
let service: OperationService;
/** True once a restore has paused the pod. */
let wasPaused: boolean;
let snapshot: string;
beforeEach(async () => {
  scene = createBackupScene();
  service = scene.open();
  mkdirSync(join(scene.volume, 'work'));
  writeFileSync(join(scene.volume, 'work', 'file'), 'saved');
  const request = scene.backupRequest({ path: '/data/work' });
  service.beginBackup(scene.podId, request);
  snapshot = (await scene.ended(service, request.operation_id)).snapshot_id ?? '';
  wasPaused = false;
  scene.pod.state = () => {
    wasPaused ||= pausesPod(scene.store.activeOf(scene.podId));
    return 'running';
  };
});
afterEach(async () => {
  await service.stop();
  scene.close();
});

async function restore(
  target_path: string,
  change: Parameters<BackupScene['restoreRequest']>[1] = {},
  by = service,
): Promise<OperationView> {
  const request = scene.restoreRequest(snapshot, { target_path, ...change });
  by.beginRestore(scene.podId, request);
  return scene.ended(by, request.operation_id);
}

const isTidy = () => readdirSync(dirname(scene.volume)).join() === '_data';

it('does not stop the pod for a new folder or an empty one', async () => {
  mkdirSync(join(scene.volume, 'empty'));
  for (const target of ['/data/new', '/data/deep/er/new', '/data/empty']) {
    const view = await restore(target, { mode: 'new_only' });
    expect(view, target).toMatchObject({ stage: 'done', restarts_pod: false, error: null });
    const file = join(scene.volume, target.slice('/data/'.length), 'file');
    expect(readFileSync(file, 'utf8')).toBe('saved');
  }
  expect(wasPaused).toBe(false);
  expect(isTidy()).toBe(true);
});

it('stops the pod for a folder with files, and reports it', async () => {
  const view = await restore('/data/work');
  expect(view).toMatchObject({ stage: 'done', restarts_pod: true });
  expect(view.log.join('\n')).toContain('The pod is stopped and started again');
  expect(wasPaused).toBe(true);
});

it('follows no link that the pod puts into the way, and replaces nothing', async () => {
  const outside = join(scene.folder, 'outside');
  mkdirSync(outside);
  mkdirSync(join(scene.volume, 'inner'));
  const racing = scene.open({
    runCommand: async (file, args, options) => {
      if (args.some((arg) => arg.includes('mv -T -n'))) {
        renameSync(join(scene.volume, 'inner'), join(scene.volume, 'was-inner'));
        symlinkSync(outside, join(scene.volume, 'inner'));
      }
      return runCommand(file, args, options);
    },
  });
  const view = await restore('/data/inner/new', { mode: 'new_only' }, racing);
  expect(view).toMatchObject({ stage: 'failed', error: { code: 'PathRefused' } });
  expect(readdirSync(outside)).toEqual([]);
  expect(lstatSync(join(scene.volume, 'inner')).isSymbolicLink()).toBe(true);
  expect(isTidy()).toBe(true);
  await racing.stop();

  const taking = scene.open({
    runCommand: async (file, args, options) => {
      if (args.some((arg) => arg.includes('mv -T -n'))) {
        writeFileSync(join(scene.volume, 'taken'), 'of the pod');
      }
      return runCommand(file, args, options);
    },
  });
  const taken = await restore('/data/taken', { mode: 'new_only' }, taking);
  expect(taken).toMatchObject({ stage: 'failed', error: { code: 'TargetNotEmpty' } });
  expect(readFileSync(join(scene.volume, 'taken'), 'utf8')).toBe('of the pod');
  await taking.stop();
});

it('completes a restore whose agent died after the folder was put in place', async () => {
  const request = scene.restoreRequest(snapshot, { target_path: '/data/new', mode: 'new_only' });
  const { put } = scene.store;
  let isDead = false;
  const dying = scene.open({
    store: {
      ...scene.store,
      put(row) {
        isDead ||= row.stage === 'committed';
        if (isDead) throw new Error('the agent is dead');
        put(row);
      },
    },
  });
  dying.beginRestore(scene.podId, request);
  await vi.waitFor(() => expect(existsSync(join(scene.volume, 'new/file'))).toBe(true), 60_000);
  await vi.waitFor(() => expect(isDead).toBe(true), 60_000);
  await dying.stop();
  const next = scene.open();
  next.start();
  const view = await scene.ended(next, request.operation_id);
  expect(view).toMatchObject({ stage: 'done', error: null, restarts_pod: false });
  expect(readFileSync(join(scene.volume, 'new/file'), 'utf8')).toBe('saved');
  expect(isTidy()).toBe(true);
  await next.stop();
});
