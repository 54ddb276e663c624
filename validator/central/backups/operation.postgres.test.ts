/** Backups with two central APIs on one PostgreSQL database, in one process and on one clock. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  type BackupScene,
  createBackupScene,
} from '../../../test/fakes/scenes/central-backup-scene.ts';
import { createPostgresDatabase } from '../../../test/fakes/scenes/central-database.ts';
import { createTestMarket, type TestMarket } from '../../../test/fakes/scenes/market-fixture.ts';
import { openCentralDatabase } from '../platform/database/database.ts';

let scene: BackupScene;
let other: TestMarket;
beforeEach(async () => {
  const url = await createPostgresDatabase();
  scene = await createBackupScene({ db: await openCentralDatabase(url) });
  const { agents, clock } = scene.market;
  const { storage } = scene;
  const outside = { agents, clock, backupStorage: storage, pruneBackups: storage.prune };
  other = await createTestMarket({ db: await openCentralDatabase(url), ...outside });
});
afterEach(async () => {
  await scene.close();
  await other.close();
});

it('begins a scheduled backup once, sends it once and records its end once', async () => {
  const { clock } = scene.market;
  await scene.call('POST', '/backup-configs', {
    pod_id: scene.podId,
    backup_frequency_hours: 1,
    retention_days: 1,
    backup_path: '/workspace',
  });
  await clock.advance(3_600_000);
  const beat = { beat_at: clock.now() };
  await scene.market.ports.db.updateTable('central_processes').set(beat).execute();
  const both = (work: (market: TestMarket) => Promise<void>) =>
    Promise.all([scene.market, other].map(work));
  await both((market) => market.central.tendBackups());
  await both((market) => market.sync());
  const { items } = (await scene.call('GET', '/backup-logs')).body;
  expect(items).toHaveLength(1);
  expect(scene.operations.calls).toEqual([`backup ${items[0].id}`]);
  scene.operations.finish(items[0].id);
  await clock.advance(2_000);
  await both((market) => market.sync());
  expect(await scene.eventsOf('backup')).toEqual(['requested', 'success']);
});

it('begins a scheduled drill once, sends it once and records its end once', async () => {
  const { clock } = scene.market;
  const backupId = await scene.backedUp();
  await scene.call('POST', '/backup-configs', {
    pod_id: scene.podId,
    backup_frequency_hours: 720,
    retention_days: 365,
    backup_path: '/workspace',
  });
  const later = { next_at: clock.now() + 10_000 * 3_600_000 };
  await scene.market.ports.db.updateTable('backup_configs').set(later).execute();
  const both = (work: (market: TestMarket) => Promise<void>) =>
    Promise.all([scene.market, other].map(work));
  await both((market) => market.central.tendBackups());
  await clock.advance(1_500 * 3_600_000);
  const beat = { beat_at: clock.now() };
  await scene.market.ports.db.updateTable('central_processes').set(beat).execute();
  await both((market) => market.central.tendBackups());
  await both((market) => market.sync());
  const drills = scene.operations.calls.filter((call) => call.startsWith('verify'));
  expect(drills).toHaveLength(1);
  scene.operations.finish(scene.drill());
  await clock.advance(2_000);
  await both((market) => market.sync());
  expect((await scene.log(backupId)).verify_status).toBe('PASSED');
  expect(await scene.eventsOf('backup')).toEqual(['requested', 'success', 'status']);
});

it('accepts one of two concurrent requests for a backup and a restore', async () => {
  const backupId = await scene.backedUp();
  const restore = { backup_id: backupId, restore_path: '/workspace' };
  const ask = (market: TestMarket, path: string, body: object) =>
    market.call('POST', `/pods/${scene.podId}/${path}`, {
      headers: scene.account.key,
      body: body as Record<string, unknown>,
    });
  const answers = await Promise.all([
    ask(scene.market, 'backup', {}),
    ask(other, 'restore', restore),
    ask(other, 'backup', {}),
    ask(scene.market, 'restore', restore),
  ]);
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409, 409, 409]);
});

it('cleans a repository in one process at a time', async () => {
  const [first] = [await scene.backedUp('a'), await scene.backedUp('b')];
  await scene.call('DELETE', `/backup-logs/${first}`);
  await Promise.all([scene.market, other].map((market) => market.central.tendBackups()));
  expect(scene.storage.pruned).toEqual([['b'.repeat(64)]]);
});
