/** Begins scheduled backups and drills that are due. Several processes may run it at once. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import { podStateOf, REMOVAL_STATES } from '../market/pods/pod.state.ts';
import { findAnyPod } from '../market/pods/pod-access.ts';
import type { Database, Db, Pod } from '../platform/database/tables.ts';
import { lockRow } from '../platform/database/transactions.ts';
import { SYSTEM_ACTOR } from '../platform/identity.ts';
import { beginDrill, beginScheduledBackup, DRILL_RETRY_MS, isConflict } from './begin-operation.ts';
import { hasOpenDrill } from './operation.store.ts';
import type { Repositories } from './repository.service.ts';
import { nextRunAt } from './schedule.service.ts';
import {
  findConfig,
  findConfigOf,
  findDrillExecutor,
  findNewestBackup,
  listDueConfigs,
  listDueDrills,
  setNextDrill,
  setNextRun,
} from './schedule.store.ts';

/** Maximum number of schedules in one pass; the next pass continues. */
const BATCH = 100;

export type ScheduleJob = ReturnType<typeof createScheduleJob>;

export function createScheduleJob(deps: {
  db: Database;
  clock: Clock;
  random: Random;
  repositories: Repositories;
  /** Hours between two drills of a schedule; 0 disables drills. */
  drillEveryHours: number;
}) {
  const { db, clock, drillEveryHours } = deps;

  /** Drills have an offset that differs from the offset of the pod's backups. */
  const nextDrillAt = (podId: string) => nextRunAt(`drill ${podId}`, drillEveryHours, clock.now());

  /**
   * Returns the executor of the backup that began. Returns null if the backup is no longer due, was skipped, or is
   * retried later.
   */
  function beginDueBackup(configId: string): Promise<string | null> {
    return db.transaction().execute(async (tx) => {
      const found = await findConfig(tx, configId);
      if (found === undefined) return null;
      await lockRow(tx, 'pods', found.pod_id);
      const config = await findConfig(tx, configId);
      const pod = await findAnyPod(tx, found.pod_id);
      const nowMs = clock.now();
      if (config?.next_at == null || config.next_at > nowMs) return null;
      if (pod === undefined || isBeingRemoved(pod)) {
        await setNextRun(tx, configId, null);
        return null;
      }
      const row = await beginScheduledBackup(tx, deps, pod, config);
      if (row === null) return null;
      await setNextRun(tx, configId, nextRunAt(pod.id, config.backup_frequency_hours, nowMs));
      return row.state === 'PENDING' ? pod.executor_id : null;
    });
  }

  /**
   * Returns the executor of the drill that began, or null. If the node has an open drill, postpones the scheduled
   * drill.
   */
  function beginDueDrill(configId: string, podId: string): Promise<string | null> {
    return db.transaction().execute(async (tx) => {
      const pod = await findAnyPod(tx, podId);
      if (pod === undefined) return null;
      const executorId = await findDrillExecutor(tx, pod);
      if (executorId !== null) await lockRow(tx, 'executors', executorId);
      await lockRow(tx, 'pods', podId);
      const config = await findConfig(tx, configId);
      if (config?.next_at == null || (config.drill_at ?? 0) > clock.now()) return null;
      const backup = config.drill_at === null ? undefined : await findNewestBackup(tx, podId);
      await setNextDrill(tx, podId, nextDrillAt(podId));
      if (backup === undefined) return null;
      const request = { backup, executorId, occasion: 'SCHEDULED', actor: SYSTEM_ACTOR } as const;
      const isNodeBusy = executorId !== null && (await hasOpenDrill(tx, executorId));
      const begun = isNodeBusy ? 'later' : await beginDrill(tx, deps, request);
      if (begun === null) return null;
      if (begun !== 'later' && !isConflict(begun)) return executorId;
      await setNextDrill(tx, podId, clock.now() + DRILL_RETRY_MS);
      return null;
    });
  }

  return {
    /** Begins due backups and returns their executors. After a downtime, begins only one backup per schedule. */
    async beginDueBackups(): Promise<string[]> {
      const executorIds: string[] = [];
      for (const { id } of await listDueConfigs(db, clock.now(), BATCH)) {
        const executorId = await beginDueBackup(id);
        if (executorId !== null) executorIds.push(executorId);
      }
      return executorIds;
    },

    /** Begins due drills and returns their executors. After a downtime, begins only one drill per schedule. */
    async beginDueDrills(): Promise<string[]> {
      if (drillEveryHours === 0) return [];
      const executorIds: string[] = [];
      for (const { id, pod_id: podId } of await listDueDrills(db, clock.now(), BATCH)) {
        const executorId = await beginDueDrill(id, podId);
        if (executorId !== null) executorIds.push(executorId);
      }
      return executorIds;
    },

    /**
     * Begins a scheduled backup before its time, for a pod that is about to be removed. Returns true if the backup
     * began. The caller has locked the pod.
     */
    async beginLastBackup(tx: Db, pod: Pod): Promise<boolean> {
      const config = await findConfigOf(tx, pod.id);
      if (config?.next_at == null || isBeingRemoved(pod)) return false;
      return (await beginScheduledBackup(tx, deps, pod, config))?.state === 'PENDING';
    },
  };
}

function isBeingRemoved({ state, ended_at }: { state: string; ended_at: number | null }): boolean {
  return ended_at !== null || REMOVAL_STATES.includes(podStateOf(state));
}
