/** Composes the backups module: routes, the sync with agents, schedules, retention and cleanup. */
import type { HttpServer } from '#shared/http/server.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { type Loop, startLoop } from '#shared/runtime/loop.ts';
import { podIdNamedBy } from '../market/pods/pod-access.ts';
import type { CentralDeps } from '../platform/central-deps.ts';
import type { Db } from '../platform/database/tables.ts';
import type { OnceDeps } from '../platform/idempotency/once.ts';
import type { Processes } from '../platform/processes.ts';
import type { Sweeps } from '../platform/schedule/retention.ts';
import { registerBackupRoutes } from './backup.routes.ts';
import { beginRestore, type NewRestore } from './begin-operation.ts';
import { createOperationService } from './operation.service.ts';
import { findOpenOf } from './operation.store.ts';
import { createOperationSync } from './operation-sync.ts';
import { createRepositories } from './repository.service.ts';
import { createCleanup, deleteBackupsOf, expireBackups, sweepLogs } from './retention.service.ts';
import { createRunningTime } from './running-time.ts';
import { createScheduleJob } from './schedule.job.ts';
import { registerScheduleRoutes } from './schedule.routes.ts';
import { activeConfigOf, createSchedules } from './schedule.service.ts';

/** Default hours between two drills of a schedule: 30 days. */
const DRILL_HOURS = 720;
const DUE_INTERVAL_MS = 5_000;
const CLEANUP_INTERVAL_MS = 60_000;

/**
 * Composes the module without starting its jobs. Without a storage no operation can begin, but existing rows can be
 * read.
 */
export function createBackups(
  { ports, options, trust }: CentralDeps,
  { processes, wake }: { processes: Processes; wake(executorId: string): void },
) {
  const { db, clock, random, log, secret, agents } = ports;
  const { backupStorage: storage = null, pruneBackups: prune = null } = ports;
  const repositories = createRepositories({ db, clock, random, secret, storage });
  const shared = { db, clock, random, log, repositories, trust };
  const runningTime = createRunningTime({ db, clock, processes });
  const operations = createOperationSync(shared);
  const { backupDrillHours = DRILL_HOURS, pollMs = 0 } = options;
  const drillEveryHours = storage === null ? 0 : backupDrillHours;
  const schedule = createScheduleJob({ ...shared, drillEveryHours });
  const cleanUp =
    storage === null
      ? async () => undefined
      : createCleanup({ ...shared, processes, storage, prune });
  const cleanUpUnlessSuspect = async () => (trust.isSuspect() ? undefined : cleanUp());
  let loops: Loop[] = [];

  async function handleDue(): Promise<void> {
    if (trust.isSuspect()) return;
    await runningTime.record();
    await operations.failOrphans();
    for (const executorId of await schedule.beginDueBackups()) wake(executorId);
    for (const executorId of await schedule.beginDueDrills()) wake(executorId);
    await expireBackups(db, clock.now());
  }

  function loop(intervalMs: number, run: () => Promise<void>): Loop {
    const onError = (error: unknown) =>
      log.error({ err: error }, `backup job failed: ${messageOf(error)}`);
    return startLoop({ clock, intervalMs, run, onError });
  }

  return {
    /** Handles the operations of an agent during the sync of its pods. */
    operations,

    /** Registers the routes below /api. */
    register(api: HttpServer, once: OnceDeps): void {
      const named = (accountId: string, id: string) => podIdNamedBy(db, accountId, id);
      const routes = { ...once, podIdNamedBy: named };
      registerScheduleRoutes(api, { ...routes, schedules: createSchedules(shared) });
      const operations = createOperationService({ ...shared, agents, wake });
      registerBackupRoutes(api, { ...routes, wake, operations });
    },

    /**
     * Begins a last backup of a pod that is about to be removed, in the transaction that has locked the pod. Returns
     * true if a backup began.
     */
    lastBackup: schedule.beginLastBackup,
    isBackingUp: async (tx: Db, podId: string) => (await findOpenOf(tx, podId)) !== undefined,
    /** Begins a restore that was requested with a rental. */
    beginRestore: (tx: Db, restore: NewRestore) => beginRestore(tx, { clock, random }, restore),
    configOf: activeConfigOf,

    /** Deletes the backups of an account, in the transaction that removes the account. */
    deleteAccountData: (tx: Db, accountId: string) => deleteBackupsOf(tx, accountId, clock.now()),

    /** Handles all due work and cleans up once. Tests call it instead of `start`. */
    async runOnce(): Promise<void> {
      await handleDue();
      await cleanUpUnlessSuspect();
    },

    start(): void {
      if (loops.length > 0) return;
      // A cleanup may take minutes, so schedules do not wait for the cleanup.
      loops = [
        loop(Math.max(DUE_INTERVAL_MS, pollMs), handleDue),
        loop(Math.max(CLEANUP_INTERVAL_MS, pollMs), cleanUpUnlessSuspect),
      ];
    },

    async stop(): Promise<void> {
      await Promise.all(loops.map((each) => each.stop()));
      loops = [];
    },

    sweeps: { 'backup-logs': (tx: Db) => sweepLogs(tx, clock.now()) } satisfies Sweeps,
  };
}
