/** What falls due by time alone: scheduled backups, those that were kept for long enough, old logs. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import { podStateOf, REMOVAL_STATES } from '../market/pods/pod.state.ts';
import { findAnyPod } from '../market/pods/pod-access.ts';
import type { Database, Db, Pod } from '../platform/database/tables.ts';
import { lockRow } from '../platform/database/transactions.ts';
import { beginScheduled } from './backup.begin.ts';
import {
  discardBackup,
  findConfig,
  findConfigOf,
  listDueConfigs,
  listExpiring,
  setNextRun,
} from './backup.store.ts';
import type { BackupRepositories } from './backup-repository.service.ts';
import { nextRunAt } from './backup-schedule.ts';
import { dropOld, findOpenOf } from './operation.store.ts';

/** Taken per look; the rest comes with the next one. */
const BATCH = 100;
const LOG_KEPT_MS = 90 * 86_400_000;

export type BackupUpkeep = ReturnType<typeof createBackupUpkeep>;

export function createBackupUpkeep(deps: {
  db: Database;
  clock: Clock;
  random: Random;
  repositories: BackupRepositories;
}) {
  const { db, clock } = deps;

  /** One run, whichever of several processes gets there first; the executor where one began. */
  function run(configId: string): Promise<string | null> {
    return db.transaction().execute(async (tx) => {
      const found = await findConfig(tx, configId);
      if (found === undefined) return null;
      await lockRow(tx, 'pods', found.pod_id);
      const config = await findConfig(tx, configId);
      const pod = await findAnyPod(tx, found.pod_id);
      const nowMs = clock.now();
      if (config?.next_at == null || config.next_at > nowMs) return null;
      if (pod === undefined || isGoing(pod)) {
        await setNextRun(tx, configId, null);
        return null;
      }
      const row = await beginScheduled(tx, deps, pod, config);
      if (row === null) return null;
      await setNextRun(tx, configId, nextRunAt(pod.id, config.backup_frequency_hours, nowMs));
      return row.state === 'PENDING' ? pod.executor_id : null;
    });
  }

  return {
    /** Begins every run whose time has come, one for all that a downtime has cost; on which executors. */
    async runDue(): Promise<string[]> {
      const executorIds: string[] = [];
      for (const { id } of await listDueConfigs(db, clock.now(), BATCH)) {
        const executorId = await run(id);
        if (executorId !== null) executorIds.push(executorId);
      }
      return executorIds;
    },

    /** One by the pod's schedule though it is not its time yet, for a pod about to go; whether one began. The caller holds the pod. */
    async beginLast(tx: Db, pod: Pod): Promise<boolean> {
      const config = await findConfigOf(tx, pod.id);
      if (config?.next_at == null || isGoing(pod)) return false;
      return (await beginScheduled(tx, deps, pod, config))?.state === 'PENDING';
    },

    /** Whether a backup or restore of the pod is under way. */
    isWorkingOn: async (tx: Db, podId: string) => (await findOpenOf(tx, podId)) !== undefined,

    /** Lets go of backups that were kept for long enough. */
    async expire(): Promise<void> {
      const nowMs = clock.now();
      for (const id of await listExpiring(db, nowMs, BATCH)) {
        await discardBackup(db, id, 'EXPIRED', nowMs);
      }
    },

    /** Removes logs of what is long over. */
    sweep: (tx: Db) => dropOld(tx, clock.now() - LOG_KEPT_MS),
  };
}

function isGoing({ state, ended_at }: { state: string; ended_at: number | null }): boolean {
  return ended_at !== null || REMOVAL_STATES.includes(podStateOf(state));
}
