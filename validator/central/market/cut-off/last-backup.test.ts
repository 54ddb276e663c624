/** Tests how long a pod without money is retained while its last backup runs. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  type BackupScene,
  createBackupScene,
} from '../../../../test/fakes/scenes/central-backup-scene.ts';

const MINUTE_MS = 60_000;
const TOLD_EVERY_MINUTES = 1.5;
/** Pays for half an hour of the test's pod at $2.20 per hour. */
const CREDIT_UUSD = 1_100_000;

let scene: BackupScene;
let backupId: string;
beforeEach(async () => {
  scene = await createBackupScene({ signupCreditUusd: CREDIT_UUSD });
  const config = { pod_id: scene.podId, backup_frequency_hours: 720, retention_days: 5 };
  await scene.call('POST', '/backup-configs', { ...config, backup_path: '/workspace' });
  await scene.later(30 * MINUTE_MS - 10_000);
  expect((await scene.pod(scene.podId)).status).toBe('RUNNING');
  await scene.later(10_000);
  await scene.market.sync();
  const { items } = (await scene.call('GET', `/backup-logs/pod/${scene.podId}`)).body;
  expect(items).toMatchObject([{ status: 'IN_PROGRESS' }]);
  backupId = items[0].id;
});
afterEach(() => scene.close());

const status = async () => (await scene.pod(scene.podId)).status;

/** Advances minutes while the agent keeps reporting the backup as running. */
async function upload(minutes: number): Promise<void> {
  for (let left = minutes; left > 0; left -= TOLD_EVERY_MINUTES) {
    const heartbeat_ms = scene.market.clock.now();
    scene.operations.progress(backupId, { stage: 'uploading', heartbeat_ms });
    await scene.later(TOLD_EVERY_MINUTES * MINUTE_MS);
  }
}

it('retains the pod beyond its grace period while the backup runs, and removes it at the next check', async () => {
  await upload(15);
  expect(await status()).toBe('STOPPED');
  scene.operations.finish(backupId);
  await scene.later(MINUTE_MS / 2);
  expect((await scene.log(backupId)).status).toBe('COMPLETED');
  await scene.later(MINUTE_MS / 2);
  await scene.later();
  expect((await scene.pod(scene.podId)).details).toMatchObject({
    reason_code: 'balance_exhausted',
  });
});

it('retains the pod for at most an hour, even if its renter changes the pod', async () => {
  await upload(30);
  expect(
    (await scene.call('PATCH', `/pods/${scene.podId}`, { pod_name: 'mine still' })).status,
  ).toBe(200);
  await upload(28.5);
  expect(await status()).toBe('STOPPED');
  await upload(1.5);
  await scene.later();
  expect((await scene.pod(scene.podId)).details).toMatchObject({
    reason_code: 'balance_exhausted',
  });
});
