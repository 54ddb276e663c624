/** Restore drills with a fake restic: comparison, outcomes, restarts, concurrency. */
import { existsSync, mkdirSync, readdirSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { type BackupScene, createBackupScene } from '../../test/fakes/scenes/backup-scene.ts';
import { MAX_ATTEMPTS } from './operation.state.ts';
import type { Restic } from './restic.ts';
import type { ListedNode } from './restic-output.ts';
import { kernelMode } from './run-drill.ts';

const SNAPSHOT = 'a'.repeat(64);
const NODE: ListedNode = {
  struct_type: 'node',
  type: 'file',
  path: '/_data/file',
  size: 5,
  mode: 0o644,
  mtime: '2026-01-01T00:00:00.123456789Z',
  ctime: '2026-01-01T00:00:00.123456789Z',
};
const MTIME_S = 1_767_225_600.123;
const never = () => Promise.reject(new Error('not expected in this test'));

let scene: BackupScene;
beforeEach(() => {
  scene = createBackupScene({ quick: true });
});
afterEach(() => scene.close());

/** Creates a restic whose snapshot has one file; `restore` can restore something else. */
function fakeRestic(restore: Restic['restore'] = putFile('12345')): Restic {
  return {
    checkVersion: async () => undefined,
    make: never,
    unlock: never,
    backup: never,
    statsOf: never,
    readTrees: never,
    check: async () => undefined,
    async list(_talk, id, onNode) {
      onNode(NODE);
      return id;
    },
    restore,
  };
}

function putFile(content: string, mode = 0o644, mtime = MTIME_S): Restic['restore'] {
  return async (_talk, { target }) => {
    mkdirSync(join(target, '_data'));
    writeFileSync(join(target, '_data', 'file'), content, { mode });
    utimesSync(join(target, '_data', 'file'), mtime, mtime);
  };
}

const stuck: Restic['restore'] = ({ signal }) => systemClock.sleep(600_000, signal);

it.each([
  ['unchanged', putFile('12345'), null],
  ['missing', async () => undefined, '"/_data/file" was not restored'],
  ['shorter', putFile('123'), '"/_data/file" has 3 bytes, not 5'],
  ['with another mode', putFile('12345', 0o600), '"/_data/file" has mode 600, not 644'],
  ['with another time', putFile('12345', 0o644, 7), '"/_data/file" has another modification time'],
] as const)('compares a restored file with the snapshot: %s', async (_how, restore, message) => {
  const service = scene.open({ restic: fakeRestic(restore) });
  const request = scene.verifyRequest(SNAPSHOT);
  service.beginVerify(scene.podId, request);
  const view = await scene.ended(service, request.operation_id);
  const error = message === null ? null : { code: 'VerificationFailed', message };
  expect(view).toMatchObject({ stage: message === null ? 'done' : 'failed', error });
  expect(readdirSync(dirname(scene.volume))).toEqual(['_data']);
});

it('converts Go file modes to kernel modes', () => {
  const modes = [420, 8_389_101, 0x0050_01ff];
  expect(modes.map((mode) => kernelMode(mode).toString(8))).toEqual(['644', '4755', '3777']);
});

it('leaves no temporary files after a cancellation or an interrupted drill', async () => {
  const first = scene.open({ restic: fakeRestic(stuck) });
  const fetching = (id: string) => eventually(id, () => first.get(id).stage === 'fetching');
  const cancelled = scene.verifyRequest(SNAPSHOT);
  first.beginVerify(scene.podId, cancelled);
  await fetching(cancelled.operation_id);
  expect(() => first.beginBackup(scene.podId, scene.backupRequest())).toThrow(
    expect.objectContaining({ code: 'BACKUP_STORAGE_BUSY' }),
  );
  first.cancel(cancelled.operation_id);
  expect((await scene.ended(first, cancelled.operation_id)).stage).toBe('cancelled');
  expect(readdirSync(dirname(scene.volume))).toEqual(['_data']);

  const left = scene.verifyRequest(SNAPSHOT);
  first.beginVerify(scene.podId, left);
  await fetching(left.operation_id);
  const row = scene.store.get(left.operation_id);
  const folder = row?.kind === 'verify' ? (row.journal?.folder ?? '') : '';
  expect(existsSync(folder)).toBe(true);
  await first.stop();
  expect(existsSync(folder)).toBe(false);
  // A killed agent left this folder.
  mkdirSync(join(folder, '_data'), { recursive: true });
  const second = scene.open({ restic: fakeRestic() });
  second.start();
  expect(await scene.ended(second, left.operation_id)).toMatchObject({ stage: 'done' });
  expect(second.beginVerify(scene.podId, left).stage, 'a repeat').toBe('done');
  expect(existsSync(folder)).toBe(false);
});

it('leaves no temporary files of a drill that fails after too many kills of its agent', async () => {
  const first = scene.open({ restic: fakeRestic(stuck) });
  const request = scene.verifyRequest(SNAPSHOT);
  first.beginVerify(scene.podId, request);
  await eventually('it begins', () => first.get(request.operation_id).stage === 'fetching');
  await first.stop();
  const row = scene.store.get(request.operation_id);
  if (row?.kind !== 'verify' || row.journal === null) throw new Error('it has no journal');
  mkdirSync(row.journal.folder);
  scene.store.put({ ...row, attempts: MAX_ATTEMPTS });
  const second = scene.open({ restic: fakeRestic() });
  second.start();
  const view = await scene.ended(second, request.operation_id);
  expect(view).toMatchObject({ stage: 'failed', error: { code: 'EngineFailed' } });
  expect(existsSync(row.journal.folder)).toBe(false);
});

it('runs one drill at a time and does not delay backups', async () => {
  const service = scene.open({ restic: fakeRestic(stuck) });
  const ids = Array.from({ length: 2 }, () => {
    const request = scene.verifyRequest(SNAPSHOT);
    service.beginVerify(systemRandom.uuid(), request);
    return request.operation_id;
  });
  const stages = () => ids.map((id) => service.get(id).stage).join();
  await eventually('one works', () => stages() === 'fetching,queued');
  const backup = scene.backupRequest();
  service.beginBackup(scene.podId, backup);
  expect((await scene.ended(service, backup.operation_id)).error?.code).toBe('EngineFailed');
  expect(stages()).toBe('fetching,queued');
  await service.stop();
});
