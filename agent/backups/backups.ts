/** Composes backups, restores and restore drills of pods and persistent volumes. */
import type { HttpServer } from '#shared/http/server.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { registerVolumeRoutes } from '../containers/volumes/volume.routes.ts';
import type { VolumeOperations, VolumeService } from '../containers/volumes/volume.service.ts';
import type { PodPause } from '../pods/pod-data.ts';
import type { Pods } from '../pods/pods.ts';
import { SETTLING_MS } from '../pods/trial.plan.ts';
import { createRunChild } from './bounded-child.ts';
import { registerOperationRoutes } from './operation.routes.ts';
import { createOperationService } from './operation.service.ts';
import type { OperationRow, OperationStore } from './operation.store.ts';
import { createRestic } from './restic.ts';
import { createResticCgroup } from './restic-cgroup.ts';

export type BackupsPorts = {
  executorId: string;
  clock: Clock;
  random: Random;
  log: Log;
  /** 32-byte key that encrypts secrets at rest. */
  secret: Uint8Array;
  /** Folder to which drills restore, and mount point of private mounts; created when needed. */
  scratchFolder: string;
  folderBytes(folders: readonly string[]): Promise<number | null>;
  /** Called when an operation has ended. */
  onOperationEnded(row: OperationRow): void;
};

type Subjects = { pods: Pods; volumes: VolumeService };

/** Starts no operation before `operations.start`. */
export function createBackups(
  ports: BackupsPorts,
  { store, ...subjects }: Subjects & { store: OperationStore },
) {
  const { clock, log, executorId } = ports;
  const operations = createOperationService({
    ...ports,
    store,
    ...subjectsOf(subjects),
    restic: createRestic({
      clock,
      runChild: createRunChild(clock),
      program: 'restic',
      cgroup: createResticCgroup({ name: `podwright-backups-${executorId}`, log }),
      isRoot: process.getuid?.() === 0,
    }),
    runCommand,
    settlingMs: SETTLING_MS,
    onEnded: ports.onOperationEnded,
  });

  return {
    operations,

    register(server: HttpServer): void {
      registerOperationRoutes(server, operations);
      registerVolumeRoutes(server, { volumes: subjects.volumes, operations });
    },
  };
}

/** Returns the state of operations on volumes, for the volume service. */
export function volumeOperationsOf(store: OperationStore): VolumeOperations {
  return {
    activeKind: (id) => store.activeOf(id)?.kind ?? null,
    restoredBytes(id) {
      const last = store.lastOf(id);
      return (last?.kind === 'restore' ? last.progress.processed_bytes : null) ?? 0;
    },
  };
}

/** Returns the subjects of operations: pods, and persistent volumes, in which no process runs. */
function subjectsOf({ pods, volumes }: Subjects) {
  const { records, pause, dataRootsOf, containerFilesOf, diskWatch } = pods;
  const { knows } = volumes;
  return {
    pause: {
      wake: (id: string) => (knows(id) ? undefined : pause.wake(id)),
      runStateOf: async (id: string) => (knows(id) ? 'stopped' : pause.runStateOf(id)),
    } satisfies PodPause,
    dataRootsOf: (id: string) => (knows(id) ? volumes.rootsOf(id) : dataRootsOf(id)),
    containerFilesOf: async (id: string) => (knows(id) ? 'unreadable' : containerFilesOf(id)),
    freeBytesOf: diskWatch.freeBytesOf,
    isGone: (id: string) =>
      knows(id) ? volumes.isGone(id) : records.get(id)?.desired !== 'running',
  };
}
