/** Takes what was deleted or has expired out of the storage: nothing uses a repository meanwhile. */

import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import { findAnyPod } from '../market/pods/pod-access.ts';
import type { BackupRepository, Database } from '../platform/database/tables.ts';
import type { BackupStorage, PruneRepository } from '../platform/ports.ts';
import type { Processes } from '../platform/processes.ts';
import { type BackupRepositories, holdRepository } from './backup-repository.service.ts';
import {
  listKept,
  listToClean,
  listWaste,
  noteCleaned,
  noteEmptied,
  noteProblem,
  setCleaner,
} from './backup-repository.store.ts';
import { isInUse } from './operation.store.ts';

/** Repositories per pass. */
const BATCH = 50;

export type BackupCleanupDeps = {
  db: Database;
  clock: Clock;
  log: Log;
  processes: Processes;
  repositories: BackupRepositories;
  storage: BackupStorage;
  /** Null: single snapshots stay until their whole repository goes. */
  prune: PruneRepository | null;
};

/** Returns one pass over everything that is to be cleaned. */
export function createBackupCleanup(deps: BackupCleanupDeps) {
  const { db, clock, log, processes, storage } = deps;

  /** False while it is used, or another living process cleans it or has just done so. */
  function claim({ id }: BackupRepository): Promise<boolean> {
    return db.transaction().execute(async (tx) => {
      const { cleaning_boot_id: holder } = await holdRepository(tx, id);
      if (holder !== null && holder !== processes.bootId && (await processes.isAlive(tx, holder))) {
        return false;
      }
      // Another may have cleaned it since it was listed.
      if ((await listToClean(tx, 1, id)).length === 0) return false;
      const isFree = !(await isInUse(tx, id));
      await setCleaner(tx, id, isFree ? processes.bootId : null);
      return isFree;
    });
  }

  /** Null, or why nothing could be taken out. */
  async function takeOut(id: string, kept: readonly string[]): Promise<string | null> {
    if (kept.length === 0) {
      await storage.remove(id);
      return null;
    }
    const without = 'Its space is freed with the last backup of its pod: restic is not installed';
    if (deps.prune === null) return without;
    const { isMade: _, ...access } = await deps.repositories.access(id, 'full');
    return (await deps.prune(access, kept)) ? null : without;
  }

  async function clean(repository: BackupRepository): Promise<void> {
    const { id } = repository;
    const waste = await listWaste(db, id);
    const kept = await listKept(db, id);
    const pod = await findAnyPod(db, repository.pod_id);
    const problem = await takeOut(id, kept);
    await db.transaction().execute(async (tx) => {
      await holdRepository(tx, id);
      if (problem === null) await noteCleaned(tx, waste, clock.now());
      else await noteProblem(tx, id, problem);
      const isOver = pod === undefined || pod.ended_at !== null;
      if (kept.length === 0) await noteEmptied(tx, id, isOver ? clock.now() : null);
      await setCleaner(tx, id, null);
    });
  }

  return async (): Promise<void> => {
    for (const repository of await listToClean(db, BATCH)) {
      if (!(await claim(repository))) continue;
      try {
        await clean(repository);
      } catch (error) {
        log.warn({ err: error, repository_id: repository.id }, `cleaning: ${messageOf(error)}`);
        await setCleaner(db, repository.id, null);
      }
    }
  };
}
