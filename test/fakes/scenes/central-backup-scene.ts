/** A renter with a running pod and a backup storage. */
import { createFakeBackupStorage } from '../external/fake-backup-storage.ts';
import type { TestMarketOverrides } from './market-fixture.ts';
import { createPodScene } from './pod-scene.ts';

/** Credit of the renter in micro-dollars, enough for tests in which pods run for months. */
const MONTHS_OF_CREDIT_UUSD = 100_000_000_000;

export type BackupScene = Awaited<ReturnType<typeof createBackupScene>>;

/** Creates the scene. The caller must call `close()`. */
export async function createBackupScene(overrides: TestMarketOverrides = {}) {
  const storage = createFakeBackupStorage();
  const scene = await createPodScene({
    backupStorage: storage,
    pruneBackups: storage.prune,
    signupCreditUusd: MONTHS_OF_CREDIT_UUSD,
    ...overrides,
  });
  const { market, host } = scene;
  const podId = await scene.running();

  /** Requests a backup and runs the jobs that send it to the node. */
  async function backUp(body: object = {}, id = podId): Promise<string> {
    const { status, body: answer } = await scene.call('POST', `/pods/${id}/backup`, body);
    if (status !== 200) throw new Error(JSON.stringify(answer));
    await market.sync();
    return answer.backup_log_id;
  }

  async function restore(body: object, id = podId): Promise<string> {
    const sent = { restore_path: '/workspace', ...body };
    const { status, body: answer } = await scene.call('POST', `/pods/${id}/restore`, sent);
    if (status !== 200) throw new Error(JSON.stringify(answer));
    await market.sync();
    return answer.restore_log_id;
  }

  return {
    ...scene,
    podId,
    storage,
    operations: host.operations,
    backUp,
    restore,
    /** Requests a backup and lets the node complete it. The snapshot id repeats `digit`. */
    async backedUp(digit = 'a', id = podId): Promise<string> {
      const logId = await backUp({}, id);
      host.operations.finish(logId, digit);
      await scene.later(2_000);
      return logId;
    },
    /** Requests a drill of the backup. */
    verify: (id: string) => scene.call('POST', `/backup-logs/${id}/verify`),
    /** Returns the id of the last drill that the node received. */
    drill(): string {
      const call = host.operations.calls.findLast((text) => text.startsWith('verify '));
      return call?.slice('verify '.length) ?? '';
    },
    log: async (id: string) => (await scene.call('GET', `/backup-logs/${id}`)).body,
    restores: async (id = podId) =>
      (await scene.call('GET', `/pods/${id}/restore-logs`)).body.items,
    /** Advances the clock by `ms` and runs the jobs that are due. */
    async tend(ms = 1_000): Promise<void> {
      await market.clock.advance(ms);
      await market.central.tendBackups();
    },
    /** Returns the subtypes of the pod's events of one kind, without the prefix `backup.` or `restore.`. */
    async eventsOf(kind: 'backup' | 'restore', id = podId): Promise<string[]> {
      const events: { event_type: string; sub_event_type: string }[] = await scene.events(id);
      return events
        .filter(({ event_type }) => event_type === kind)
        .map(({ sub_event_type }) => sub_event_type.slice(kind.length + 1));
    },
  };
}
