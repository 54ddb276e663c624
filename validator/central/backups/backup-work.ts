/** Backups put together: their routes, the passes over agents, schedules and clean-up. */
import type { HttpServer } from '#shared/http/server.ts';
import type { CentralDeps } from '../platform/central-deps.ts';
import type { Db } from '../platform/database/tables.ts';
import type { OnceDeps } from '../platform/idempotency/once.ts';
import type { Processes } from '../platform/processes.ts';
import type { Sweeps } from '../platform/schedule/retention.ts';
import { createBackupJob } from './backup.job.ts';
import { registerBackupRoutes } from './backup.routes.ts';
import { createBackups, forgetBackups } from './backup.service.ts';
import { createBackupCleanup } from './backup-cleanup.ts';
import { activeConfigOf, createBackupConfigs } from './backup-config.service.ts';
import { createBackupRepositories } from './backup-repository.service.ts';
import { createBackupUpkeep } from './backup-upkeep.ts';
import { createDrills } from './drill.service.ts';
import { createDrillUpkeep } from './drill-upkeep.ts';
import { createOperationSync } from './operation-sync.ts';
import { beginRestore, createRestores, type NewRestore } from './restore.service.ts';

/** A month, where the options do not say. */
const DRILL_HOURS = 720;

/** Nothing runs and nothing is registered yet. Without a storage nothing can be begun, and what is there is shown. */
export function createBackupWork(
  { ports, options }: CentralDeps,
  { processes, wake }: { processes: Processes; wake(executorId: string): void },
) {
  const { db, clock, random, log, secret, agents } = ports;
  const { backupStorage: storage = null, pruneBackups: prune = null } = ports;
  const repositories = createBackupRepositories({ db, clock, random, secret, storage });
  const shared = { db, clock, random, log, repositories };
  const operations = createOperationSync(shared);
  const upkeep = createBackupUpkeep(shared);
  const { backupDrillHours: everyHours = DRILL_HOURS } = options;
  const drills = createDrillUpkeep({ ...shared, everyHours: storage === null ? 0 : everyHours });
  const cleanUp =
    storage === null
      ? async () => undefined
      : createBackupCleanup({ ...shared, processes, storage, prune });
  const job = createBackupJob({ clock, log, upkeep, drills, operations, cleanUp, wake });

  return {
    /** What agents are asked in the turns of the pod sync. */
    operations,

    /** Routes below /api. */
    register(api: HttpServer, once: OnceDeps): void {
      registerBackupRoutes(api, {
        ...once,
        wake,
        configs: createBackupConfigs(shared),
        backups: createBackups({ ...shared, wake }),
        drills: createDrills(shared),
        restores: createRestores({ ...shared, agents, wake }),
      });
    },

    /** For a pod that is about to go, in the transaction that holds it; whether a backup began. */
    lastBackup: upkeep.beginLast,
    /** Whether a backup or restore of the pod is under way. */
    isBackingUp: upkeep.isWorkingOn,
    /** Starts a restore that was requested with a rental. */
    beginRestore: (tx: Db, restore: NewRestore) => beginRestore(tx, { clock, random }, restore),
    configOf: activeConfigOf,

    /** Deletes the backups of an account, in the transaction that removes the account. */
    deleteAccountData: (tx: Db, accountId: string) => forgetBackups(tx, accountId, clock.now()),

    runOnce: () => job.runOnce(),
    start: () => job.start(),
    stop: () => job.stop(),
    /** Removes logs of what is long over. */
    sweeps: { 'backup-logs': upkeep.sweep } satisfies Sweeps,
  };
}
