/** Queries of backup_repositories. */
import type { BackupRepository, Db } from '../platform/database/tables.ts';
import { isInGrace } from './retention.store.ts';

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

/** Records that the repository exists in the storage. */
export async function markNotEmpty(db: Db, id: string, nowMs: number): Promise<void> {
  await db
    .updateTable('backup_repositories')
    .set({ made_at: nowMs })
    .where('id', '=', id)
    .where('made_at', 'is', null)
    .execute();
}

/**
 * Returns repositories with snapshots to remove, and repositories of ended pods without a retained snapshot. `only`
 * restricts the result to one repository.
 */
export async function listToClean(
  db: Db,
  limit: number,
  only?: string,
): Promise<BackupRepository[]> {
  const repositories = db
    .selectFrom('backup_repositories')
    .selectAll()
    .$if(only !== undefined, (query) => query.where('id', '=', only ?? ''));
  const withRemovable = await repositories
    .where('id', 'in', (eb) =>
      eb
        .selectFrom('backup_logs')
        .select('repository_id')
        .where('cleanup_at', 'is not', null)
        .where((log) => log.not(isInGrace(log))),
    )
    .limit(limit)
    .execute();
  const unused = await repositories
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
            .where((log) =>
              log.or([
                log('backup_logs.state', '=', 'COMPLETED'),
                log.and([log('backup_logs.cleanup_at', 'is not', null), isInGrace(log)]),
              ]),
            ),
        ),
      ),
    )
    .limit(limit)
    .execute();
  return [...new Map([...withRemovable, ...unused].map((row) => [row.id, row])).values()];
}

/** Sets or clears the process that cleans the repository. The caller has locked the row to set it. */
export async function setCleaner(db: Db, id: string, bootId: string | null): Promise<void> {
  await db
    .updateTable('backup_repositories')
    .set({ cleaning_boot_id: bootId })
    .where('id', '=', id)
    .execute();
}

/** Records that the repository was removed from the storage. `removedAt`: set if it was removed permanently. */
export async function markEmpty(db: Db, id: string, removedAt: number | null): Promise<void> {
  await db
    .updateTable('backup_repositories')
    .set({ made_at: null, removed_at: removedAt })
    .where('id', '=', id)
    .execute();
}
