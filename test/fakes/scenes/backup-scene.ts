/**
 * Backups and restores on plain folders with the real restic. The pod is a fake that runs unless a restore pauses it.
 */
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
import type { ContainerLayers } from '../../../agent/containers/engine/engine.ts';
import { openDatabase } from '../../../agent/database/database.ts';
import { createFolderBytes } from '../../../agent/pods/folder-size.ts';
import type { PodRunState } from '../../../agent/pods/pod-data.ts';
import { eventually } from '../eventually.ts';
import { writeQuickRepository } from '../external/quick-repository.ts';

/** Timeout in milliseconds: restic runs at the lowest priority, and the host may be busy. */
const LONGEST_MS = 60_000;
export const PASSWORD = 'a-password-of-the-repository';
const EXECUTOR = '6f9619ff-8b86-4d01-b42d-00cf4fc964ff';

export type BackupScene = ReturnType<typeof createBackupScene>;

type OpenOptions = {
  store?: OperationStore;
  /** Program to run instead of restic. */
  program?: string;
  patienceMs?: number;
  restic?: Restic;
  runCommand?: RunCommand;
};

export type SceneOptions = {
  /** True: keeps the database in memory, and creates no repository unless `made` is true. */
  quick?: boolean;
  /** True: creates the repository with the scene. Default: the opposite of `quick`. */
  made?: boolean;
  /** Folder of another scene, so that a second process uses the same pod. */
  folder?: string;
  podId?: string;
  /** Path of the repository, and the URL by which the agent reaches it. Default: a folder of the scene. */
  location?: string;
  repository?: RepositoryAccess;
  /** True: the pod has a container, whose file system is an overlay that only the agent mounts. */
  container?: boolean;
};

const noCommand: RunCommand = async () => ({ exitCode: 0, stdout: '', stderr: '', ended: null });

/**
 * Creates the adapter as the agent does; `program` may replace restic. It does not retry while the repository is
 * unreachable.
 */
export function realRestic(program = 'restic', patienceMs = 0): Restic {
  const runChild = createRunChild(systemClock);
  const isRoot = process.getuid?.() === 0;
  return createRestic({ clock: systemClock, runChild, program, isRoot, patienceMs });
}

function layersIn(folder: string): ContainerLayers {
  const layers = { upper: join(folder, 'c/diff'), work: join(folder, 'c/work') };
  const lower = [join(folder, 'init/diff'), join(folder, 'image/diff')];
  for (const path of [...Object.values(layers), ...lower]) mkdirSync(path, { recursive: true });
  return { ...layers, lower };
}

/** Creates one pod with one volume at /data. `close` removes everything. */
export function createBackupScene(options: SceneOptions = {}) {
  const { quick = false, made = !quick, podId = systemRandom.uuid() } = options;
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), 'podwright-backup-'));
  const volume = join(folder, 'volume', '_data');
  const location = options.location ?? join(folder, 'repository');
  mkdirSync(volume, { recursive: true });
  const layers = layersIn(join(folder, 'layers'));
  const mounts = [{ target: '/data', volumeFolder: volume }];
  if (made) writeQuickRepository(location, PASSWORD);
  const database = openDatabase(quick ? ':memory:' : join(folder, 'agent.sqlite'));
  const store = createOperationStore(database);
  const pod = {
    /** Returns the pod's state while no restore pauses the pod. */
    state: (): PodRunState => 'running',
    /** True if the pod stops when a restore pauses it. */
    stops: true,
    /** Id of the pod's container; empty if the agent cannot read the id. An edit replaces the container. */
    containerId: 'container-1',
    /** Bytes that the pod may still write; null: unlimited. */
    freeBytes: null as number | null,
  };
  const repository = options.repository ?? { location, password: PASSWORD, environment: {} };

  function open(given: OpenOptions = {}) {
    const { program = 'restic', patienceMs = 0 } = given;
    return createOperationService({
      executorId: EXECUTOR,
      store: given.store ?? store,
      secret: new Uint8Array(32).fill(7),
      random: systemRandom,
      restic: given.restic ?? realRestic(program, patienceMs),
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
      containerFilesOf: async () =>
        options.container === true && pod.containerId !== ''
          ? { containerId: pod.containerId, layers, mounts }
          : 'unreadable',
      freeBytesOf: () => pod.freeBytes,
      folderBytes: createFolderBytes(runCommand),
      isGone: () => pod.state() === 'gone',
      runCommand: given.runCommand ?? (quick ? noCommand : runCommand),
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
    /** Layers of the container: `upper` has its changes, `lower` the image. */
    layers,
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
    /** Waits until the operation has ended and returns it. */
    ended: (service: Service, id: string): Promise<OperationView> =>
      eventually(
        'the end of an operation',
        () => {
          const view = service.get(id);
          return isFinal(view.stage) ? view : null;
        },
        LONGEST_MS,
      ),
    /** Runs restic on the repository and returns its output. */
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
