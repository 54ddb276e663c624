/** Takes what is no longer kept out of the repositories of volumes: nothing uses one meanwhile. */

import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Database, Volume } from '../../platform/database/tables.ts';
import type { BackupStorage, PruneRepository } from '../../platform/ports.ts';
import type { Processes } from '../../platform/processes.ts';
import { GIVE_UP_MS } from './volume.state.ts';
import {
  deleteVolumeRow,
  findCopyOf,
  findVolume,
  hasCopies,
  listToClean,
  updateVolume,
} from './volume.store.ts';
import type { VolumeRepositories } from './volume-repository.ts';

/** Repositories per pass. */
const BATCH = 200;

export type VolumeCleanupDeps = {
  db: Database;
  clock: Clock;
  log: Log;
  processes: Processes;
  repositories: VolumeRepositories;
  storage: BackupStorage;
  /** Null: what was saved before stays until its volume goes. */
  prune: PruneRepository | null;
};

/** Returns one pass over everything that is to be cleaned. */
export function createVolumeCleanup(deps: VolumeCleanupDeps) {
  const { db, clock, log, processes, storage, prune } = deps;

  /** Null while it is used, or another living process cleans it or has just done so. */
  function claim(id: string): Promise<Volume | null> {
    return db.transaction().execute(async (tx) => {
      const volume = await findVolume(tx, id);
      if (volume === undefined) return null;
      const { cleaning_boot_id: holder, deleted_at: deletedAt } = volume;
      if (holder !== null && holder !== processes.bootId && (await processes.isAlive(tx, holder))) {
        return null;
      }
      // Another may have cleaned it since it was listed.
      if ((await listToClean(tx, 1, id)).length === 0) return null;
      const isUsed =
        deletedAt === null
          ? (await findCopyOf(tx, id))?.operation_id != null
          : clock.now() - deletedAt < GIVE_UP_MS && (await hasCopies(tx, id));
      await updateVolume(tx, id, { cleaning_boot_id: isUsed ? null : processes.bootId });
      return isUsed ? null : volume;
    });
  }

  async function clean(volume: Volume): Promise<void> {
    const { id, snapshot_id: kept } = volume;
    if (volume.deleted_at !== null) {
      await storage.remove(id);
      return deleteVolumeRow(db, id);
    }
    const access = await deps.repositories.access(volume, 'full');
    const isClean = kept !== null && prune !== null && (await prune(access, [kept]));
    await updateVolume(db, id, { cleaning_boot_id: null, ...(isClean ? { has_waste: 0 } : {}) });
  }

  return async (): Promise<void> => {
    for (const { id, deleted_at: deletedAt } of await listToClean(db, BATCH)) {
      if (prune === null && deletedAt === null) continue;
      const volume = await claim(id);
      if (volume === null) continue;
      try {
        await clean(volume);
      } catch (error) {
        log.warn({ err: error, volume_id: id }, `cleaning a volume: ${messageOf(error)}`);
        await updateVolume(db, id, { cleaning_boot_id: null });
      }
    }
  };
}
