/**
 * Queries of backup_logs, restore_logs and backup_drills. An update changes a state only if the transition is allowed.
 */

import type { SelectQueryBuilder, Updateable } from 'kysely';
import { idsJson, isAmong, prepared, type Slots } from '../platform/database/prepared.ts';
import type { BackupLogsTable, OperationColumns } from '../platform/database/tables/backups.ts';
import type {
  BackupDrill,
  BackupLog,
  Db,
  RestoreLog,
  Tables,
} from '../platform/database/tables.ts';
import { type OperationState, sourcesOf } from './operation.state.ts';
import type { Operation, OperationKind, OperationRef } from './operation.ts';

const TABLES = {
  backup: 'backup_logs',
  restore: 'restore_logs',
  drill: 'backup_drills',
} as const satisfies Record<OperationKind, keyof Tables>;

const KINDS: readonly OperationKind[] = ['backup', 'restore', 'drill'];

type OperationChange = Omit<Updateable<OperationColumns>, 'state'> & { state?: never };

export async function insertOperation(db: Db, { kind, ...row }: Operation): Promise<void> {
  await db.insertInto(TABLES[kind]).values(row).execute();
}

/** Returns a backup of any account. */
export function findBackup(db: Db, id: string): Promise<BackupLog | undefined> {
  return db.selectFrom('backup_logs').selectAll().where('id', '=', id).executeTakeFirst();
}

/** Returns a restore of any account. */
export function findRestore(db: Db, id: string): Promise<RestoreLog | undefined> {
  return db.selectFrom('restore_logs').selectAll().where('id', '=', id).executeTakeFirst();
}

export type Page = { offset: number; limit: number };

/** Returns backups of an account or pod, newest first, and their total number. */
export function pageOfBackups(
  db: Db,
  { column, id }: { column: 'account_id' | 'pod_id'; id: string },
  page: Page,
): Promise<{ rows: BackupLog[]; total: number }> {
  return pageOf(db.selectFrom('backup_logs').where(column, '=', id), page);
}

/** Returns restores of a pod, newest first, and their total number. */
export function pageOfRestores(
  db: Db,
  podId: string,
  page: Page,
): Promise<{ rows: RestoreLog[]; total: number }> {
  return pageOf(db.selectFrom('restore_logs').where('pod_id', '=', podId), page);
}

async function pageOf<Table extends 'backup_logs' | 'restore_logs'>(
  all: SelectQueryBuilder<Tables, Table, object>,
  { offset, limit }: Page,
) {
  const rows = await all
    .selectAll()
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .limit(limit)
    .offset(offset)
    .execute();
  const counted = await all.select((eb) => eb.fn.countAll<number>().as('n')).executeTakeFirst();
  return { rows, total: Number(counted?.n ?? 0) };
}

const withAny = prepared((db, { ids }: Slots<{ ids: string }>) => {
  const [first, ...others] = KINDS.flatMap((kind) => {
    const onNodes = db
      .selectFrom(TABLES[kind])
      .select('executor_id')
      .where(isAmong(db, 'executor_id', ids));
    return [
      onNodes.where('completed_at', 'is', null),
      onNodes.where('abandoned_at', 'is not', null),
    ] as const;
  });
  if (first === undefined) throw new Error('there are no kinds of operations');
  return others.reduce((all, each) => all.unionAll(each), first);
});

/**
 * Returns the nodes that have open or abandoned operations, a node with several of them more than once. Most nodes have
 * none. Queried in every pass of the sync.
 */
export async function nodesWithOperations(
  db: Db,
  executorIds: readonly string[],
): Promise<string[]> {
  const { rows } = await withAny(db, { ids: idsJson(executorIds) });
  return rows.map((row) => row.executor_id);
}

/**
 * Returns the open operations of a node: drills, backups, restores, each oldest first. Drills come first, because the
 * other kinds displace them.
 */
export async function listOpenOn(db: Db, executorId: string): Promise<Operation[]> {
  const openOf = (kind: OperationKind) =>
    open(db, kind).where('executor_id', '=', executorId).execute();
  const backups = await openOf('backup');
  const restores = await openOf('restore');
  const drills = await openOf('drill');
  return [
    ...drills.map((row) => withKind('drill', row)),
    ...backups.map((row) => withKind('backup', row)),
    ...restores.map((row) => withKind('restore', row)),
  ];
}

const openOn = (kind: 'backup' | 'restore') =>
  prepared((db, { podId }: Slots<{ podId: string }>) => open(db, kind).where('pod_id', '=', podId));
const OPEN_ON_POD = { backup: openOn('backup'), restore: openOn('restore') };

/** Returns the open backup or restore of a pod. */
export async function findOpenOf(db: Db, podId: string): Promise<Operation | undefined> {
  for (const kind of ['backup', 'restore'] as const) {
    const [row] = (await OPEN_ON_POD[kind](db, { podId })).rows;
    if (row !== undefined) return withKind(kind, row);
  }
  return undefined;
}

export function findOpenDrill(db: Db, podId: string): Promise<BackupDrill | undefined> {
  return openDrills(db).where('pod_id', '=', podId).executeTakeFirst();
}

export async function hasOpenDrill(db: Db, executorId: string): Promise<boolean> {
  const found = await openDrills(db).where('executor_id', '=', executorId).executeTakeFirst();
  return found !== undefined;
}

const startupRestore = prepared((db, { podId }: Slots<{ podId: string }>) =>
  db
    .selectFrom('restore_logs')
    .select('id')
    .where('pod_id', '=', podId)
    .where('completed_at', 'is', null)
    .where('occasion', '=', 'STARTUP'),
);

/** Returns true if a restore that was requested with the pod's rental is open. */
export async function hasOpenStartupRestore(db: Db, podId: string): Promise<boolean> {
  return (await startupRestore(db, { podId })).rows.length > 0;
}

/** Returns true if an open operation uses the repository. */
export async function isInUse(db: Db, repositoryId: string): Promise<boolean> {
  for (const kind of KINDS) {
    const query = open(db, kind).where('repository_id', '=', repositoryId);
    if ((await query.executeTakeFirst()) !== undefined) return true;
  }
  return false;
}

/** Returns open backups and restores of ended pods. Unordered: sorting by age would scan the whole table. */
export async function listOrphans(db: Db, limit: number): Promise<Operation[]> {
  const orphans = (kind: 'backup' | 'restore') =>
    open(db, kind)
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
    ...(await orphans('backup')).map((row) => withKind('backup', row)),
    ...(await orphans('restore')).map((row) => withKind('restore', row)),
  ];
}

/** Returns open drills on nodes without pods, which are polled for a short time only. */
export async function listStrandedDrills(db: Db, limit: number): Promise<Operation[]> {
  const rows = await openDrills(db)
    .where((eb) =>
      eb.not(
        eb.exists(
          eb
            .selectFrom('pods')
            .select('pods.id')
            .whereRef('pods.executor_id', '=', 'backup_drills.executor_id')
            .where('pods.ended_at', 'is', null),
        ),
      ),
    )
    .orderBy('created_at')
    .limit(limit)
    .execute();
  return rows.map((row) => withKind('drill', row));
}

/** Returns operations that were ended without their node, so that the node still has to cancel them. */
export async function listAbandonedOn(db: Db, executorId: string): Promise<OperationRef[]> {
  const abandoned = (kind: OperationKind) =>
    db
      .selectFrom(TABLES[kind])
      .select('id')
      .where('executor_id', '=', executorId)
      .where('abandoned_at', 'is not', null)
      .execute();
  const found = await Promise.all(
    KINDS.map(async (kind) => (await abandoned(kind)).map(({ id }) => ({ kind, id }))),
  );
  return found.flat();
}

/** Makes a transition to `to`; returns false if the present state does not allow the transition. */
export async function moveOperation(
  db: Db,
  { kind, id }: OperationRef,
  to: OperationState,
  change: OperationChange,
): Promise<boolean> {
  const done = await db
    .updateTable(TABLES[kind])
    .set({ ...change, state: to })
    .where('id', '=', id)
    .where('state', 'in', sourcesOf(to))
    .executeTakeFirst();
  return done.numUpdatedRows > 0n;
}

/** Cancels an operation that was never sent to its node; returns false if it was sent or has ended. */
export async function cancelUnsent(
  db: Db,
  { kind, id }: OperationRef,
  nowMs: number,
): Promise<boolean> {
  const done = await db
    .updateTable(TABLES[kind])
    .set({ state: 'CANCELLED', cancel_at: nowMs, completed_at: nowMs })
    .where('id', '=', id)
    .where('state', 'in', sourcesOf('CANCELLED'))
    .where('sent_at', 'is', null)
    .executeTakeFirst();
  return done.numUpdatedRows > 0n;
}

/**
 * Records the first request to the node before it is sent. Returns false if the operation has ended or is being
 * cancelled.
 */
export async function markSent(
  db: Db,
  { kind, id }: OperationRef,
  nowMs: number,
): Promise<boolean> {
  const done = await db
    .updateTable(TABLES[kind])
    .set((eb) => ({ sent_at: eb.fn.coalesce('sent_at', eb.cast<number>(eb.val(nowMs), 'bigint')) }))
    .where('id', '=', id)
    .where('completed_at', 'is', null)
    .where('cancel_at', 'is', null)
    .executeTakeFirst();
  return done.numUpdatedRows > 0n;
}

/** Changes an open operation; has no effect on an ended operation. */
export async function changeOpen(
  db: Db,
  { kind, id }: OperationRef,
  change: OperationChange,
): Promise<void> {
  await db
    .updateTable(TABLES[kind])
    .set(change)
    .where('id', '=', id)
    .where('completed_at', 'is', null)
    .execute();
}

/** Records that the node no longer works on an abandoned operation. */
export async function clearAbandoned(db: Db, { kind, id }: OperationRef): Promise<void> {
  await db.updateTable(TABLES[kind]).set({ abandoned_at: null }).where('id', '=', id).execute();
}

/** Stores the result of a completed backup. */
export async function setSnapshot(
  db: Db,
  id: string,
  result: Pick<BackupLog, 'snapshot_id' | 'quality' | 'changed_files_json' | 'expires_at'>,
): Promise<void> {
  await db.updateTable('backup_logs').set(result).where('id', '=', id).execute();
}

/** Stores the node's log and findings of a restore. */
export async function setRestoreFindings(
  db: Db,
  id: string,
  findings: Pick<RestoreLog, 'log' | 'lost_files_json' | 'restarted_pod'>,
): Promise<void> {
  await db.updateTable('restore_logs').set(findings).where('id', '=', id).execute();
}

/** Stores the state of a drill in the log of its backup. */
export async function setVerification(
  db: Db,
  backupId: string,
  change: Pick<
    Updateable<BackupLogsTable>,
    | 'verify_status'
    | 'verified_at'
    | 'verify_error'
    | 'verify_error_code'
    | 'verified_files'
    | 'verified_bytes'
  >,
): Promise<void> {
  await db.updateTable('backup_logs').set(change).where('id', '=', backupId).execute();
}

function open(db: Db, kind: OperationKind) {
  return db
    .selectFrom<(typeof TABLES)[OperationKind]>(TABLES[kind])
    .selectAll()
    .where('completed_at', 'is', null)
    .orderBy('created_at');
}

function openDrills(db: Db) {
  return db.selectFrom('backup_drills').selectAll().where('completed_at', 'is', null);
}

/**
 * Adds `kind` to `row`, which must come from the table of `kind`. The type of a query over several tables does not name
 * the table.
 */
function withKind(kind: OperationKind, row: unknown): Operation {
  return { ...(row as object), kind } as Operation;
}
