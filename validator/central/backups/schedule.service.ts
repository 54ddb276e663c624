/** Schedules of backups, one for each pod: the backup configurations of the API. */

import { createHash } from 'node:crypto';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { podStateOf, REMOVAL_STATES } from '../market/pods/pod.state.ts';
import {
  findAnyPod,
  podIdNamedBy,
  requireAnyOwnPod,
  requireOwnPod,
} from '../market/pods/pod-access.ts';
import type { BackupConfig, Database, Db, Pod } from '../platform/database/tables.ts';
import type { UserIdentity } from '../platform/identity.ts';
import type { BackupConfigCreate, BackupConfigResponse } from './backup.schemas.ts';
import { configRow } from './operation-response.ts';
import { checkedPath } from './pod-path.ts';
import type { Repositories } from './repository.service.ts';
import { findConfig, findConfigOf, listConfigs, putConfig, setNextRun } from './schedule.store.ts';

const HOUR_MS = 3_600_000;

/**
 * Returns the time of the next run after `nowMs`. Runs repeat at a fixed offset that a hash of the pod's id determines.
 * Therefore the backups of all pods do not run at once, and a downtime delays at most one run.
 */
export function nextRunAt(podId: string, frequencyHours: number, nowMs: number): number {
  const everyMs = frequencyHours * HOUR_MS;
  const digest = createHash('sha256').update(podId).digest();
  const offsetMs = digest.readUIntBE(0, 6) % everyMs;
  return nowMs + everyMs - ((nowMs - offsetMs) % everyMs);
}

export type Schedules = ReturnType<typeof createSchedules>;

export function createSchedules(deps: {
  db: Database;
  clock: Clock;
  random: Random;
  repositories: Repositories;
}) {
  const { db, clock, random, repositories } = deps;

  return {
    /**
     * Creates or replaces the pod's schedule, in the transaction of the request. Throws `bad_request` for a path that
     * cannot be backed up.
     */
    async put(
      tx: Db,
      caller: UserIdentity,
      body: BackupConfigCreate,
    ): Promise<BackupConfigResponse> {
      const nowMs = clock.now();
      repositories.requireStorage();
      const named = body.pod_id ?? body.pod_executor_id ?? '';
      const podId = await podIdNamedBy(tx, caller.accountId, named);
      const pod = await requireOwnPod(tx, caller.accountId, podId, nowMs);
      refuseBeingRemoved(pod);
      const path = checkedPath(body.backup_path);
      const present = await findConfigOf(tx, pod.id);
      const config = {
        id: present?.id ?? random.uuid(),
        pod_id: pod.id,
        account_id: pod.account_id,
        backup_frequency_hours: body.backup_frequency_hours,
        retention_days: body.retention_days,
        backup_path: path,
        next_at: nextRunAt(pod.id, body.backup_frequency_hours, nowMs),
        drill_at: present?.drill_at ?? null,
        created_at: present?.created_at ?? nowMs,
        updated_at: nowMs,
      };
      await putConfig(tx, config);
      return configRow(config, pod.executor_id);
    },

    /** Oldest first. */
    async list(caller: UserIdentity): Promise<BackupConfigResponse[]> {
      const configs = await listConfigs(db, caller.accountId);
      return Promise.all(configs.map((config) => rowOf(db, config)));
    },

    /** Returns null for a pod without an active schedule. */
    async ofPod(caller: UserIdentity, podId: string): Promise<BackupConfigResponse | null> {
      return activeConfigOf(db, await requireAnyOwnPod(db, caller.accountId, podId));
    },

    /** Deactivates the schedule and returns it; its backups are kept. */
    remove(caller: UserIdentity, id: string): Promise<BackupConfigResponse> {
      return db.transaction().execute(async (tx) => {
        const config = await findConfig(tx, id);
        if (config?.next_at == null)
          throw new ApiError('not_found', 'Backup configuration not found');
        if (config.account_id !== caller.accountId) {
          throw new ApiError('forbidden', 'This backup configuration belongs to another account');
        }
        await setNextRun(tx, id, null);
        return rowOf(tx, { ...config, next_at: null });
      });
    },
  };
}

/** Returns the schedule for a pod's details; an ended pod has none. */
export async function activeConfigOf(
  db: Db,
  pod: Pick<Pod, 'id' | 'executor_id' | 'ended_at'>,
): Promise<BackupConfigResponse | null> {
  if (pod.ended_at !== null) return null;
  const config = await findConfigOf(db, pod.id);
  return config?.next_at == null ? null : configRow(config, pod.executor_id);
}

async function rowOf(db: Db, config: BackupConfig): Promise<BackupConfigResponse> {
  const pod = await findAnyPod(db, config.pod_id);
  if (pod === undefined) throw new Error(`the pod ${config.pod_id} of a schedule is missing`);
  return configRow(config, pod.executor_id);
}

function refuseBeingRemoved(pod: Pod): void {
  if (!REMOVAL_STATES.includes(podStateOf(pod.state))) return;
  throw new ApiError('pod_state_conflict', 'The pod is being deleted');
}
