/** Backups and restores on plain folders with the real restic; the pod is a fake that runs unless it is held. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  BackupRequest,
  type BackupRequestInput,
  DrillRequest,
  type DrillRequestInput,
  type OperationView,
  type RepositoryAccess,
  RestoreRequest,
  type RestoreRequestInput,
} from '#shared/api/agent/operations.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { type RunCommand, runCommand } from '#shared/runtime/run-command.ts';
import { createRunChild } from '../../../agent/backups/bounded-child.ts';
import { createOperationService } from '../../../agent/backups/operation.service.ts';
import { isFinal, pausesPod } from '../../../agent/backups/operation.state.ts';
import {
  createOperationStore,
  type OperationStore,
} from '../../../agent/backups/operation.store.ts';
import { createRestic, type Restic } from '../../../agent/backups/restic.ts';
import { openDatabase } from '../../../agent/database/database.ts';
import type { PodRunState } from '../../../agent/pods/pod-pause.ts';
import { eventually } from '../eventually.ts';
import { writeQuickRepository } from '../external/quick-repository.ts';

/** restic has the lowest priority, and this machine may be busy. */
const LONGEST_MS = 60_000;
export const PASSWORD = 'a-password-of-the-repository';
const EXECUTOR = '6f9619ff-8b86-4d01-b42d-00cf4fc964ff';

export type BackupScene = ReturnType<typeof createBackupScene>;

type OpenOptions = {
  store?: OperationStore;
  /** Instead of restic. */
  program?: string;
  patienceMs?: number;
  restic?: Restic;
  runCommand?: RunCommand;
};

export type SceneOptions = {
  /** Nothing has to outlive the process; there is no repository then. */
  quick?: boolean;
  /** Whether there is a repository already. */
  made?: boolean;
  /** Of another scene: the same pod once more, for another process. */
  folder?: string;
  podId?: string;
  /** Where the repository lies, and how the agent reaches it; else a folder of the scene's. */
  location?: string;
  repository?: RepositoryAccess;
};

const noCommand: RunCommand = async () => ({ exitCode: 0, stdout: '', stderr: '', ended: null });

/** As the agent makes it; `program` may stand in for restic. It waits for no repository that does not answer. */
export function realRestic(program = 'restic', patienceMs = 0): Restic {
  const runChild = createRunChild(systemClock);
  const isRoot = process.getuid?.() === 0;
  return createRestic({ clock: systemClock, runChild, program, isRoot, patienceMs });
}

/** One pod with one volume at /data. `close` removes everything. */
export function createBackupScene(options: SceneOptions = {}) {
  const { quick = false, made = !quick, podId = systemRandom.uuid() } = options;
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), 'podwright-backup-'));
  const volume = join(folder, 'volume', '_data');
  const location = options.location ?? join(folder, 'repository');
  mkdirSync(volume, { recursive: true });
  if (made) writeQuickRepository(location, PASSWORD);
  const database = openDatabase(quick ? ':memory:' : join(folder, 'agent.sqlite'));
  const store = createOperationStore(database);
  const pod = {
    /** What it is while nothing holds it. */
    state: (): PodRunState => 'running',
    /** Whether it stops when it is held. */
    stops: true,
  };
  const repository = options.repository ?? { location, password: PASSWORD, environment: {} };

  function open(options: OpenOptions = {}) {
    const { program = 'restic', patienceMs = 0 } = options;
    return createOperationService({
      executorId: EXECUTOR,
      store: options.store ?? store,
      secret: new Uint8Array(32).fill(7),
      random: systemRandom,
      restic: options.restic ?? realRestic(program, patienceMs),
      pause: {
        wake: () => undefined,
        async runStateOf(id) {
          const state = pod.state();
          const isPaused = state !== 'gone' && pod.stops && pausesPod(store.activeOf(id));
          return isPaused ? 'stopped' : state;
        },
      },
      dataRootsOf: async () =>
        pod.state() === 'gone' ? [] : [{ mountPath: '/data', hostPath: volume }],
      isGone: () => pod.state() === 'gone',
      runCommand: options.runCommand ?? (quick ? noCommand : runCommand),
      clock: systemClock,
      log: createLog({ name: 'test-backups', level: 'silent' }),
      scratchFolder: join(folder, 'scratch'),
      settlingMs: 0,
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
    verifyRequest: (snapshot_id: string, change: Partial<DrillRequestInput> = {}) =>
      DrillRequest.parse({
        operation_id: systemRandom.uuid(),
        snapshot_id,
        sample: { seed: 'seed', max_files: 20, max_bytes: 64 * 1024 * 1024 },
        repository,
        ...change,
      }),
    /** Waits for its end. */
    ended: (service: Service, id: string): Promise<OperationView> =>
      eventually(
        'the end of an operation',
        () => {
          const view = service.get(id);
          return isFinal(view.stage) ? view : null;
        },
        LONGEST_MS,
      ),
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
