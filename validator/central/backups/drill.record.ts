/** Writes how a drill stands into the log of its backup, and tells its account. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { BackupDrill, Db } from '../platform/database/tables.ts';
import type { Actor } from '../platform/identity.ts';
import type { VerifyStatus } from './drill.state.ts';
import { noteVerification } from './drill.store.ts';
import { tellOperation } from './operation.events.ts';

/** Why one was cancelled: nothing else cancels it. */
export const GAVE_WAY = 'It gave way to a backup, a restore or the removal of the pod';

export type DrillNews = {
  status: VerifyStatus;
  actor: Actor;
  error?: { code: string | null; message: string };
  /** What was read back. */
  read?: { files: number | null; bytes: number | null };
};

export type DrilledBackup = Pick<
  BackupDrill,
  'backup_id' | 'account_id' | 'pod_id' | 'executor_id'
>;

/** In the transaction of what happened. That one nobody asked for begins, and how it goes on, are no events. */
export async function noteDrill(
  tx: Db,
  deps: { clock: Clock; random: Random },
  drill: DrilledBackup,
  { status, actor, error, read }: DrillNews,
): Promise<void> {
  const isVerdict = status === 'PASSED' || status === 'FAILED';
  await noteVerification(tx, drill.backup_id, {
    verify_status: status,
    verify_error: error?.message ?? null,
    verify_error_code: error?.code ?? null,
    ...(isVerdict ? { verified_at: deps.clock.now() } : {}),
    ...(read === undefined ? {} : { verified_files: read.files, verified_bytes: read.bytes }),
  });
  const isQuiet = status === 'IN_PROGRESS' || (status === 'PENDING' && actor.auth === 'system');
  if (isQuiet) return;
  const told = {
    outcome: 'status',
    actor,
    detail: status === 'PENDING' ? 'verify_requested' : `verify_${status.toLowerCase()}`,
    error: error?.message ?? null,
  } as const;
  const backup = { ...drill, table: 'backup_logs', id: drill.backup_id } as const;
  await tellOperation(tx, deps, backup, told);
}
