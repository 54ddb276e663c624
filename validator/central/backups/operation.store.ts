/** Queries that backups, restores and drills share. A state is changed only where the row is in one that allows it. */

import type { Updateable } from 'kysely';
import type { OperationColumns } from '../platform/database/tables/backups.ts';
import type { BackupDrill, BackupLog, Db, RestoreLog } from '../platform/database/tables.ts';
import { type OperationState, sourcesOf } from './backup.state.ts';

export type OperationTable = 'backup_logs' | 'restore_logs' | 'backup_drills';

/** What each is, with what only one of them has. */
export type Operation =
  | ({ table: 'backup_logs' } & BackupLog)
  | ({ table: 'restore_logs' } & RestoreLog)
  | ({ table: 'backup_drills' } & BackupDrill);

type OperationChange = Omit<Updateable<OperationColumns>, 'state'> & { state?: never };

/** Those on a node that are not settled yet, oldest first; drills before what they give way to. */
export async function listOpenOn(db: Db, executorId: string): Promise<Operation[]> {
  const backups = await open(db, 'backup_logs').where('executor_id', '=', executorId).execute();
  const restores = await open(db, 'restore_logs').where('executor_id', '=', executorId).execute();
  const drills = await open(db, 'backup_drills').where('executor_id', '=', executorId).execute();
  return [...drills.map(asDrill), ...backups.map(asBackup), ...restores.map(asRestore)];
}

/** The backup or restore on a pod that is not settled yet. */
export async function findOpenOf(db: Db, podId: string): Promise<Operation | undefined> {
  const backup = await open(db, 'backup_logs').where('pod_id', '=', podId).executeTakeFirst();
  if (backup !== undefined) return asBackup(backup);
  const restore = await open(db, 'restore_logs').where('pod_id', '=', podId).executeTakeFirst();
  return restore && asRestore(restore);
}

/** Whether one that is not settled yet writes to a repository or reads from it. */
export async function isInUse(db: Db, repositoryId: string): Promise<boolean> {
  const using = (table: OperationTable) =>
    open(db, table).where('repository_id', '=', repositoryId).executeTakeFirst();
  const found =
    (await using('backup_logs')) ?? (await using('restore_logs')) ?? (await using('backup_drills'));
  return found !== undefined;
}

/** Backups and restores that are not settled and whose pod has ended, in no order: sorted by age, all that ever were are looked through. */
export async function listOrphans(db: Db, limit: number): Promise<Operation[]> {
  const orphans = <T extends 'backup_logs' | 'restore_logs'>(table: T) =>
    open(db, table)
      .clearOrderBy()
      .where((eb) =>
        eb.exists(
          eb
            .selectFrom('pods')
            .select('pods.id')
            .whereRef('pods.id', '=', 'pod_id')
            .where('pods.ended_at', 'is not', null),
        ),
      )
      .limit(limit)
      .execute();
  return [
    ...(await orphans('backup_logs')).map(asBackup),
    ...(await orphans('restore_logs')).map(asRestore),
  ];
}

/** Those that were settled without their node, which has still to end them. */
export async function listAbandonedOn(
  db: Db,
  executorId: string,
): Promise<{ table: OperationTable; id: string }[]> {
  const abandoned = (table: OperationTable) =>
    db
      .selectFrom(table)
      .select('id')
      .where('executor_id', '=', executorId)
      .where('abandoned_at', 'is not', null)
      .execute();
  const tables: OperationTable[] = ['backup_logs', 'restore_logs', 'backup_drills'];
  const found = await Promise.all(
    tables.map(async (table) => (await abandoned(table)).map(({ id }) => ({ table, id }))),
  );
  return found.flat();
}

/** Moves one to `to`, from where the table of backup.state.ts lets it; false when it is elsewhere. */
export async function moveOperation(
  db: Db,
  { table, id }: { table: OperationTable; id: string },
  to: OperationState,
  change: OperationChange,
): Promise<boolean> {
  const done = await db
    .updateTable(table)
    .set({ ...change, state: to })
    .where('id', '=', id)
    .where('state', 'in', sourcesOf(to))
    .executeTakeFirst();
  return done.numUpdatedRows > 0n;
}

/** Cancels one that no request to its node has gone out for; false when one has, or it is settled. */
export async function cancelUnsent(
  db: Db,
  { table, id }: { table: OperationTable; id: string },
  nowMs: number,
): Promise<boolean> {
  const done = await db
    .updateTable(table)
    .set({ state: 'CANCELLED', cancel_at: nowMs, completed_at: nowMs })
    .where('id', '=', id)
    .where('state', 'in', sourcesOf('CANCELLED'))
    .where('sent_at', 'is', null)
    .executeTakeFirst();
  return done.numUpdatedRows > 0n;
}

/** Notes that its node is about to hear of it; false when it is not to be sent any more. */
export async function markSent(
  db: Db,
  { table, id }: { table: OperationTable; id: string },
  nowMs: number,
): Promise<boolean> {
  const done = await db
    .updateTable(table)
    .set((eb) => ({ sent_at: eb.fn.coalesce('sent_at', eb.cast<number>(eb.val(nowMs), 'bigint')) }))
    .where('id', '=', id)
    .where('completed_at', 'is', null)
    .where('cancel_at', 'is', null)
    .executeTakeFirst();
  return done.numUpdatedRows > 0n;
}

/** Changes one that is not settled. */
export async function changeOpen(
  db: Db,
  { table, id }: { table: OperationTable; id: string },
  change: OperationChange,
): Promise<void> {
  await db
    .updateTable(table)
    .set(change)
    .where('id', '=', id)
    .where('completed_at', 'is', null)
    .execute();
}

/** Its node has nothing to do with it any more. */
export async function clearAbandoned(
  db: Db,
  { table, id }: { table: OperationTable; id: string },
): Promise<void> {
  await db.updateTable(table).set({ abandoned_at: null }).where('id', '=', id).execute();
}

/** Removes what was settled without a result, and what is cleaned up, when it was made before `beforeMs`. */
export async function dropOld(db: Db, beforeMs: number): Promise<void> {
  await db
    .deleteFrom('backup_logs')
    .where('created_at', '<', beforeMs)
    .where('completed_at', 'is not', null)
    .where('expires_at', 'is', null)
    .where('cleanup_at', 'is', null)
    .execute();
  for (const table of ['restore_logs', 'backup_drills'] as const) {
    await db
      .deleteFrom(table)
      .where('created_at', '<', beforeMs)
      .where('completed_at', 'is not', null)
      .execute();
  }
}

function open<T extends OperationTable>(db: Db, table: T) {
  return db
    .selectFrom<OperationTable>(table)
    .selectAll()
    .where('completed_at', 'is', null)
    .orderBy('created_at');
}

function asBackup(row: unknown): Operation {
  return { table: 'backup_logs', ...(row as BackupLog) };
}

function asDrill(row: unknown): Operation {
  return { table: 'backup_drills', ...(row as BackupDrill) };
}

function asRestore(row: unknown): Operation {
  return { table: 'restore_logs', ...(row as RestoreLog) };
}
