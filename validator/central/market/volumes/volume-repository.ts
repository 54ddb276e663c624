/** Repositories with the saved data of volumes: access to them and their clean-up. */
import type { RepositoryAccess } from '#shared/api/agent/operations.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError, messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import { type Random, randomToken } from '#shared/runtime/random.ts';
import { createSealing } from '#shared/signing/sealing.ts';
import { deriveKey } from '../../accounts/auth/derived-key.ts';
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

const PASSWORD_BYTES = 32;

export type VolumeRepositories = ReturnType<typeof createVolumeRepositories>;

export function createVolumeRepositories(deps: {
  random: Random;
  secret: Uint8Array;
  /** Null if volumes can be neither created nor saved. */
  storage: BackupStorage | null;
}) {
  const { random, storage } = deps;
  const key = deriveKey(deps.secret, 'volume-repository-sealing');
  const sealing = createSealing({ key, random });

  return {
    /** Throws 400 `bad_request` if no storage is configured. */
    requireStorage(): void {
      if (storage !== null) return;
      throw new ApiError('bad_request', 'This marketplace has no storage for volumes', {
        hint: 'Ask the operator to configure storage for backups.',
      });
    },

    /** Returns the sealed password of a new volume's repository. */
    newPassword: (volumeId: string): string =>
      sealing.seal(randomToken(random, PASSWORD_BYTES), volumeId),

    /** Rejects if the storage does not answer. */
    async access(
      { id, account_id, password_sealed }: Volume,
      rights: 'append' | 'full',
    ): Promise<RepositoryAccess> {
      if (storage === null) throw new Error('there is no storage for volumes');
      const place = await storage.place({ id, accountId: account_id }, rights);
      return { ...place, password: sealing.open(password_sealed, id) };
    },
  };
}

const BATCH = 200;

export type VolumeCleanupDeps = {
  db: Database;
  clock: Clock;
  log: Log;
  processes: Processes;
  repositories: VolumeRepositories;
  storage: BackupStorage;
  /** Null if old snapshots are kept until their volume is deleted. */
  prune: PruneRepository | null;
};

/**
 * Returns a function that runs one pass over all repositories that have something to remove. No node uses a repository
 * during its clean-up.
 */
export function createVolumeCleanup(deps: VolumeCleanupDeps) {
  const { db, clock, log, processes, storage, prune } = deps;

  /**
   * Locks the repository for clean-up. Returns null if the repository is in use, or if another living process is
   * cleaning it or has just cleaned it.
   */
  function claim(id: string): Promise<Volume | null> {
    return db.transaction().execute(async (tx) => {
      const volume = await findVolume(tx, id);
      if (volume === undefined) return null;
      const { cleaning_boot_id: holder, deleted_at: deletedAt } = volume;
      if (holder !== null && holder !== processes.bootId && (await processes.isAlive(tx, holder))) {
        return null;
      }
      // Another process may have cleaned the repository after it was listed.
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
        log.warn(
          { err: error, volume_id: id },
          `cleaning a volume repository failed: ${messageOf(error)}`,
        );
        await updateVolume(db, id, { cleaning_boot_id: null });
      }
    }
  };
}
