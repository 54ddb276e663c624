/** How drills begin, whoever wants them: as a row that the sync brings to a node. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { BackupDrill, BackupLog, Db } from '../platform/database/tables.ts';
import type { Actor } from '../platform/identity.ts';
import { newOperation } from './backup.begin.ts';
import { findBackup } from './backup.store.ts';
import { type Busy, busyWith } from './backup-gate.ts';
import { holdRepository } from './backup-repository.service.ts';
import { noteDrill } from './drill.record.ts';
import { findOpenDrill, insertDrill } from './drill.store.ts';

const NO_NODE = 'No verified node has a pod of the account: nobody else is shown its data';

type Deps = { clock: Clock; random: Random };

export type DrillWish = {
  backup: BackupLog;
  /** Null: there is no node for it. */
  executorId: string | null;
  occasion: BackupDrill['occasion'];
  actor: Actor;
};

/**
 * The new drill or what stands in its way; null where there is nothing to read back any more, or no node to do it, which
 * the log says then. The caller holds the pod.
 */
export async function beginDrill(
  tx: Db,
  deps: Deps,
  wish: DrillWish,
): Promise<BackupDrill | Busy | null> {
  const { occasion, actor, executorId } = wish;
  const { pod_id: podId, account_id, repository_id: repositoryId } = wish.backup;
  const busy = await busyWith(tx, podId, await holdRepository(tx, repositoryId));
  if (busy !== null) return busy;
  const open = await findOpenDrill(tx, podId);
  if (open !== undefined) {
    return { message: 'A backup of this pod is being verified', activeId: open.id };
  }
  // Read again: nobody removes it any more.
  const backup = await findBackup(tx, wish.backup.id);
  if (backup?.state !== 'COMPLETED' || backup.snapshot_id === null) return null;
  const drilled = { backup_id: backup.id, account_id, pod_id: podId };
  if (executorId === null) {
    const error = { code: 'NoNode', message: NO_NODE };
    const nowhere = { ...drilled, executor_id: backup.executor_id };
    await noteDrill(tx, deps, nowhere, { status: 'INCONCLUSIVE', actor, error });
    return null;
  }
  const pod = { id: podId, account_id, executor_id: executorId };
  const made = { id: deps.random.uuid(), nowMs: deps.clock.now(), actor };
  const row: BackupDrill = {
    ...newOperation(pod, repositoryId, made),
    ...{ backup_id: backup.id, snapshot_id: backup.snapshot_id, occasion },
  };
  await insertDrill(tx, row);
  await noteDrill(tx, deps, row, { status: 'PENDING', actor });
  return row;
}
