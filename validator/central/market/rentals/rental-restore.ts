/** What a rental asks to have restored into its pod (contract 4.1). Pure. */
import { ApiError } from '#shared/runtime/errors.ts';
import type { RestoreRequest } from '../../backups/backup.schemas.ts';
import type { RentExecutorRequest } from './rental.schemas.ts';

/** Null: nothing. Throws 400 where only one of the two members is given. */
export function restoreWish(
  body: Pick<RentExecutorRequest, 'backup_log_id' | 'restore_path'>,
): RestoreRequest | null {
  const backup = body.backup_log_id ?? null;
  const path = body.restore_path ?? null;
  if (backup === null && path === null) return null;
  if (backup !== null && path !== null) {
    return { backup_id: backup, restore_path: path, mode: undefined };
  }
  throw new ApiError('bad_request', 'backup_log_id and restore_path belong together', {
    hint: 'Send both or none of them.',
  });
}
