/** Backups and restores on plain folders with the real restic; the pod is a fake that runs unless it is held. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type {
  BackupRequestInput,
  OperationView,
  RestoreRequestInput,
} from '#shared/agent-api/operations.ts';
import { BackupRequest, RestoreRequest } from '#shared/agent-api/operations.ts';
import { systemClock } from '#shared/clock.ts';
import { createLog } from '#shared/log.ts';
import { systemRandom } from '#shared/random.ts';
import { runCommand } from '#shared/run-command.ts';
import { createRunChild } from '../../agent/backups/bounded-child.ts';
import { createOperationService } from '../../agent/backups/operation.service.ts';
import { holdsPod, isFinal } from '../../agent/backups/operation.state.ts';
import type { PodStanding } from '../../agent/backups/pod-hold.ts';
import { createRestic } from '../../agent/backups/restic.ts';
import { openDatabase } from '../../agent/store/database.ts';
import { createOperationStore, type OperationStore } from '../../agent/store/operation.store.ts';
import { eventually } from './eventually.ts';

export const PASSWORD = 'a-password-of-the-repository';
const EXECUTOR = '6f9619ff-8b86-4d01-b42d-00cf4fc964ff';

export type BackupScene = ReturnType<typeof createBackupScene>;

/** One pod with one volume at /data. `close` removes everything. */
export function createBackupScene() {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-backup-'));
  const volume = join(folder, 'volume', '_data');
  const location = join(folder, 'repository');
  mkdirSync(volume, { recursive: true });
  const podId = systemRandom.uuid();
  const database = openDatabase(join(folder, 'agent.sqlite'));
  const store = createOperationStore(database);
  const pod = {
    /** What it is while nothing holds it. */
    standing: 'running' as PodStanding,
    /** How often it was looked at while it was held. */
    heldLooks: 0,
  };
  const repository = { location, password: PASSWORD, environment: {} };

  function open(seen: OperationStore = store, program = 'restic') {
    return createOperationService({
      executorId: EXECUTOR,
      store: seen,
      secret: new Uint8Array(32).fill(7),
      random: systemRandom,
      restic: createRestic({
        clock: systemClock,
        runChild: createRunChild(systemClock),
        program,
        isRoot: process.getuid?.() === 0,
      }),
      hold: {
        wake: () => undefined,
        async standingOf(id) {
          if (pod.standing === 'gone') return 'gone';
          if (!holdsPod(store.activeOf(id))) return pod.standing;
          pod.heldLooks += 1;
          return 'stopped';
        },
      },
      dataRootsOf: async () => [{ mountPath: '/data', hostPath: volume }],
      isGone: () => pod.standing === 'gone',
      runCommand,
      clock: systemClock,
      log: createLog({ name: 'test-backups', level: 'silent' }),
      settlingMs: 50,
    });
  }

  type Service = ReturnType<typeof open>;

  return {
    folder,
    volume,
    location,
    repository,
    podId,
    pod,
    store,
    open,
    backupRequest: (change: Partial<BackupRequestInput> = {}) =>
      BackupRequest.parse({
        operation_id: systemRandom.uuid(),
        path: '/data',
        repository,
        create_repository: true,
        ...change,
      }),
    restoreRequest: (snapshot_id: string, change: Partial<RestoreRequestInput> = {}) =>
      RestoreRequest.parse({
        operation_id: systemRandom.uuid(),
        snapshot_id,
        source_path: '/data',
        target_path: '/data',
        repository,
        ...change,
      }),
    /** Waits for its end. */
    ended: (service: Service, id: string): Promise<OperationView> =>
      eventually('the end of an operation', () => {
        const view = service.get(id);
        return isFinal(view.stage) ? view : null;
      }),
    /** restic's own word. */
    restic: (...args: string[]): string =>
      execFileSync('restic', ['-r', location, '--no-cache', ...args], {
        env: { ...process.env, RESTIC_PASSWORD: PASSWORD },
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'pipe'],
      }),
    close(): void {
      database.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
