/** What may be begun on a pod just now (contract 9.1). */
import { ApiError } from '#shared/runtime/errors.ts';
import { type PodState, podStateOf } from '../market/pods/pod.state.ts';
import type { BackupRepository, Db, Pod } from '../platform/database/tables.ts';
import { findOpenOf } from './operation.store.ts';

/** Where a pod has data that its node can reach. */
const BACKUP_POD_STATES: readonly PodState[] = [
  'running',
  'rebooting',
  'reboot_failed',
  'unknown',
  'failed',
  'stopped',
];
/** Where its container can be stopped and started. */
const RESTORE_POD_STATES: readonly PodState[] = ['running', 'unknown', 'rebooting'];

/** Throws `pod_state_conflict` for a pod that is in no state to be backed up or restored. */
export function requireState(pod: Pod, kind: 'backup' | 'restore'): void {
  const states = kind === 'backup' ? BACKUP_POD_STATES : RESTORE_POD_STATES;
  const state = podStateOf(pod.state);
  if (states.includes(state)) return;
  throw new ApiError('pod_state_conflict', `A ${kind} is not possible while the pod is ${state}`);
}

/** What stands in the way of another operation: a backup or restore on the pod, or a repository that is being cleaned. */
export type Busy = { message: string; activeId: string | null };

/** Null: nothing does. The caller holds the pod and the repository. */
export async function busyWith(
  tx: Db,
  podId: string,
  repository: BackupRepository,
): Promise<Busy | null> {
  const open = await findOpenOf(tx, podId);
  if (open !== undefined) {
    const kind = open.table === 'backup_logs' ? 'backup' : 'restore';
    return { message: `A ${kind} of this pod is running`, activeId: open.id };
  }
  if (repository.cleaning_boot_id === null) return null;
  return { message: 'Old backups are being removed from the storage just now', activeId: null };
}

/** The 409 of contract 2.3: `detail` beside the envelope, where clients read it. */
export function busyError({ message, activeId }: Busy): ApiError {
  const facts = { active_operation_id: activeId };
  return new ApiError('BACKUP_STORAGE_BUSY', message, {
    extra: { detail: { message, ...facts } },
    details: facts,
    ...(activeId === null ? { hint: 'Retry in a minute.' } : {}),
  });
}
