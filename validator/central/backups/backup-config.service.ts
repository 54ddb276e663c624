/** Schedules of backups: one for each pod (contract 9.1). */

import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { podStateOf, REMOVAL_STATES } from '../market/pods/pod.state.ts';
import { findAnyPod, requireAnyOwnPod, requireOwnPod } from '../market/pods/pod-access.ts';
import type { BackupConfig, Database, Db, Pod } from '../platform/database/tables.ts';
import type { UserIdentity } from '../platform/identity.ts';
import { configRow } from './backup.row.ts';
import type { BackupConfigCreate, BackupConfigResponse } from './backup.schemas.ts';
import { findConfig, findConfigOf, listConfigs, putConfig, setNextRun } from './backup.store.ts';
import { checkedPath, volumesOf } from './backup-path.ts';
import type { BackupRepositories } from './backup-repository.service.ts';
import { nextRunAt } from './backup-schedule.ts';

export type BackupConfigs = ReturnType<typeof createBackupConfigs>;

/** Rules of /backup-configs. */
export function createBackupConfigs(deps: {
  db: Database;
  clock: Clock;
  random: Random;
  repositories: BackupRepositories;
}) {
  const { db, clock, random, repositories } = deps;

  return {
    /** In `tx`: the pod's schedule from now on. Throws `bad_request` for a path that cannot be backed up. */
    async put(
      tx: Db,
      caller: UserIdentity,
      body: BackupConfigCreate,
    ): Promise<BackupConfigResponse> {
      const nowMs = clock.now();
      repositories.requireStorage();
      const pod = await requireOwnPod(tx, caller.accountId, body.pod_id, nowMs);
      refuseGoing(pod);
      const path = checkedPath(body.backup_path, volumesOf(pod));
      const present = await findConfigOf(tx, pod.id);
      const { backup_frequency_hours: hours, retention_days } = body;
      const config = {
        ...{ id: present?.id ?? random.uuid(), pod_id: pod.id, account_id: pod.account_id },
        ...{ backup_frequency_hours: hours, retention_days, backup_path: path },
        next_at: nextRunAt(pod.id, hours, nowMs),
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

    /** Null for a pod that has none. */
    async ofPod(caller: UserIdentity, podId: string): Promise<BackupConfigResponse | null> {
      return activeConfigOf(db, await requireAnyOwnPod(db, caller.accountId, podId));
    },

    /** As it was, no longer active; what it had backed up stays. */
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

/** The schedule that a pod's detail shows; an ended pod has none. */
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

function refuseGoing(pod: Pod): void {
  if (!REMOVAL_STATES.includes(podStateOf(pod.state))) return;
  throw new ApiError('pod_state_conflict', 'The pod is being deleted');
}
