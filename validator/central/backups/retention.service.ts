/**
 * Expires backups at the end of their retention, and removes the data of expired and deleted backups from the storage.
 */

import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import { findAnyPod } from '../market/pods/pod-access.ts';
import type { BackupRepository, Database, Db } from '../platform/database/tables.ts';
import type { BackupStorage, PruneRepository } from '../platform/ports.ts';
import type { Processes } from '../platform/processes.ts';
import { isInUse } from './operation.store.ts';
import { lockRepository, type Repositories } from './repository.service.ts';
import { listToClean, markEmpty, setCleaner } from './repository.store.ts';
import {
  clearAccount,
  deleteOldRows,
  discardBackup,
  listDeletableOf,
  listExpiring,
  listRetainedSnapshots,
  listToRemove,
  markCleaned,
  setProblem,
} from './retention.store.ts';

/** Maximum number of backups that one pass expires; the next pass continues. */
const EXPIRE_BATCH = 100;
/** Maximum number of repositories that one pass cleans. */
const CLEANUP_BATCH = 50;
const LOG_RETENTION_MS = 90 * 86_400_000;

/** Expires backups whose retention has ended. */
export async function expireBackups(db: Db, nowMs: number): Promise<void> {
  for (const id of await listExpiring(db, nowMs, EXPIRE_BATCH)) {
    await discardBackup(db, id, 'EXPIRED', nowMs);
  }
}

/** Deletes old logs whose backups have no data in the storage. */
export function sweepLogs(tx: Db, nowMs: number): Promise<void> {
  return deleteOldRows(tx, nowMs - LOG_RETENTION_MS);
}

/** Ends the schedules of an account that is being deleted, and deletes its backups. */
export async function deleteBackupsOf(tx: Db, accountId: string, nowMs: number): Promise<void> {
  await clearAccount(tx, accountId);
  for (const id of await listDeletableOf(tx, accountId)) {
    await discardBackup(tx, id, 'DELETED', nowMs);
  }
}

export type CleanupDeps = {
  db: Database;
  clock: Clock;
  log: Log;
  processes: Processes;
  repositories: Repositories;
  storage: BackupStorage;
  /** Null if snapshots are kept until their repository is removed. */
  prune: PruneRepository | null;
};

/** Returns a function that runs one pass over the repositories to clean. */
export function createCleanup(deps: CleanupDeps) {
  const { db, clock, log, processes, storage } = deps;

  /**
   * Reserves the repository for this process. Returns false while the repository is in use, or if another live process
   * is cleaning or has cleaned it.
   */
  function claim({ id }: BackupRepository): Promise<boolean> {
    return db.transaction().execute(async (tx) => {
      const { cleaning_boot_id: holder } = await lockRepository(tx, id);
      if (holder !== null && holder !== processes.bootId && (await processes.isAlive(tx, holder))) {
        return false;
      }
      // Another process may have cleaned the repository after it was listed.
      if ((await listToClean(tx, 1, id)).length === 0) return false;
      const isFree = !(await isInUse(tx, id));
      await setCleaner(tx, id, isFree ? processes.bootId : null);
      return isFree;
    });
  }

  /** Removes all snapshots except the retained ones; returns the reason if they cannot be removed. */
  async function removeSnapshots(id: string, retained: readonly string[]): Promise<string | null> {
    if (retained.length === 0) {
      await storage.remove(id);
      return null;
    }
    const notInstalled =
      'The space is freed after the last backup of the pod was deleted, because restic is not installed';
    if (deps.prune === null) return notInstalled;
    const { isMade: _, ...access } = await deps.repositories.access(id, 'full');
    return (await deps.prune(access, retained)) ? null : notInstalled;
  }

  async function clean(repository: BackupRepository): Promise<void> {
    const { id } = repository;
    const removable = await listToRemove(db, id);
    const retained = await listRetainedSnapshots(db, id);
    const pod = await findAnyPod(db, repository.pod_id);
    const problem = await removeSnapshots(id, retained);
    await db.transaction().execute(async (tx) => {
      await lockRepository(tx, id);
      if (problem === null) await markCleaned(tx, removable, clock.now());
      else await setProblem(tx, id, problem);
      const isPodGone = pod === undefined || pod.ended_at !== null;
      if (retained.length === 0) await markEmpty(tx, id, isPodGone ? clock.now() : null);
      await setCleaner(tx, id, null);
    });
  }

  return async (): Promise<void> => {
    for (const repository of await listToClean(db, CLEANUP_BATCH)) {
      if (!(await claim(repository))) continue;
      try {
        await clean(repository);
      } catch (error) {
        log.warn(
          { err: error, repository_id: repository.id },
          `repository cleanup failed: ${messageOf(error)}`,
        );
        await setCleaner(db, repository.id, null);
      }
    }
  };
}
