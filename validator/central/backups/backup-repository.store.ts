/** Queries of backup_repositories, and of what lies in them. */
import type { BackupRepository, Db } from '../platform/database/tables.ts';

export async function insertRepository(db: Db, row: BackupRepository): Promise<void> {
  await db.insertInto('backup_repositories').values(row).execute();
}

export function findRepository(db: Db, id: string): Promise<BackupRepository | undefined> {
  return db.selectFrom('backup_repositories').selectAll().where('id', '=', id).executeTakeFirst();
}

export function findRepositoryOf(db: Db, podId: string): Promise<BackupRepository | undefined> {
  return db
    .selectFrom('backup_repositories')
    .selectAll()
    .where('pod_id', '=', podId)
    .executeTakeFirst();
}

/** There is something in it from now on. */
export async function noteMade(db: Db, id: string, nowMs: number): Promise<void> {
  await db
    .updateTable('backup_repositories')
    .set({ made_at: nowMs })
    .where('id', '=', id)
    .where('made_at', 'is', null)
    .execute();
}

/** Those with snapshots to take out, and those of ended pods in which nothing is kept; of one alone when it is named. */
export async function listToClean(
  db: Db,
  limit: number,
  only?: string,
): Promise<BackupRepository[]> {
  const repositories = db
    .selectFrom('backup_repositories')
    .selectAll()
    .$if(only !== undefined, (query) => query.where('id', '=', only ?? ''));
  const withWaste = await repositories
    .where('id', 'in', (eb) =>
      eb.selectFrom('backup_logs').select('repository_id').where('cleanup_at', 'is not', null),
    )
    .limit(limit)
    .execute();
  const left = await repositories
    .where('removed_at', 'is', null)
    .where((eb) =>
      eb.exists(
        eb
          .selectFrom('pods')
          .select('pods.id')
          .whereRef('pods.id', '=', 'backup_repositories.pod_id')
          .where('pods.ended_at', 'is not', null),
      ),
    )
    .where((eb) =>
      eb.not(
        eb.exists(
          eb
            .selectFrom('backup_logs')
            .select('backup_logs.id')
            .whereRef('backup_logs.repository_id', '=', 'backup_repositories.id')
            .where('backup_logs.state', '=', 'COMPLETED'),
        ),
      ),
    )
    .limit(limit)
    .execute();
  return [...new Map([...withWaste, ...left].map((row) => [row.id, row])).values()];
}

/** Makes it a process's own to clean, or nobody's; the caller holds its row. */
export async function setCleaner(db: Db, id: string, bootId: string | null): Promise<void> {
  await db
    .updateTable('backup_repositories')
    .set({ cleaning_boot_id: bootId })
    .where('id', '=', id)
    .execute();
}

/** The snapshots that are kept in it. */
export async function listKept(db: Db, repositoryId: string): Promise<string[]> {
  const rows = await db
    .selectFrom('backup_logs')
    .select('snapshot_id')
    .where('repository_id', '=', repositoryId)
    .where('state', '=', 'COMPLETED')
    .execute();
  return rows.flatMap(({ snapshot_id: id }) => (id === null ? [] : [id]));
}

/** The backups whose snapshots are to be taken out of it. */
export async function listWaste(db: Db, repositoryId: string): Promise<string[]> {
  const rows = await db
    .selectFrom('backup_logs')
    .select('id')
    .where('repository_id', '=', repositoryId)
    .where('cleanup_at', 'is not', null)
    .execute();
  return rows.map((row) => row.id);
}

/** Of these backups nothing is left. */
export async function noteCleaned(db: Db, ids: readonly string[], nowMs: number): Promise<void> {
  if (ids.length === 0) return;
  await db
    .updateTable('backup_logs')
    .set({ cleanup_at: null, cleanup_problem: null, cleaned_at: nowMs })
    .where('id', 'in', ids)
    .execute();
}

/** Why what is to be taken out of it is still there. */
export async function noteProblem(db: Db, repositoryId: string, problem: string): Promise<void> {
  await db
    .updateTable('backup_logs')
    .set({ cleanup_problem: problem })
    .where('repository_id', '=', repositoryId)
    .where('cleanup_at', 'is not', null)
    .execute();
}

/** There is nothing in it any more; `removedAt`: and never will be. */
export async function noteEmptied(db: Db, id: string, removedAt: number | null): Promise<void> {
  await db
    .updateTable('backup_repositories')
    .set({ made_at: null, removed_at: removedAt })
    .where('id', '=', id)
    .execute();
}
