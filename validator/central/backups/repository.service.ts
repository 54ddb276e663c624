/** Restic repositories of backups and their passwords: one repository for each pod, which may outlive the pod. */
import type { RepositoryAccess } from '#shared/api/agent/operations.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { type Random, randomToken } from '#shared/runtime/random.ts';
import { createSealing } from '#shared/signing/sealing.ts';
import { deriveKey } from '../accounts/auth/derived-key.ts';
import type { BackupRepository, Database, Db } from '../platform/database/tables.ts';
import { lockRow } from '../platform/database/transactions.ts';
import type { BackupStorage } from '../platform/ports.ts';
import { findRepository, findRepositoryOf, insertRepository } from './repository.store.ts';

const PASSWORD_BYTES = 32;

export type Repositories = ReturnType<typeof createRepositories>;

export function createRepositories(deps: {
  db: Database;
  clock: Clock;
  random: Random;
  secret: Uint8Array;
  /** Null if backups can be neither made nor restored. */
  storage: BackupStorage | null;
}) {
  const { db, clock, random, storage } = deps;
  const key = deriveKey(deps.secret, 'backup-repository-sealing');
  const sealing = createSealing({ key, random });

  return {
    /** Throws 400 `bad_request` if no storage is configured. */
    requireStorage(): void {
      if (storage !== null) return;
      throw new ApiError('bad_request', 'This marketplace has no storage for backups', {
        hint: 'Copy the data over SSH, or ask the operator to configure storage for backups.',
      });
    },

    /**
     * Returns the pod's repository, locked until the transaction ends; creates it if necessary. The caller has locked
     * the pod.
     */
    async ofPod(tx: Db, pod: { id: string; account_id: string }): Promise<BackupRepository> {
      const present = await findRepositoryOf(tx, pod.id);
      if (present !== undefined) return lockRepository(tx, present.id);
      const id = random.uuid();
      const row = {
        id,
        pod_id: pod.id,
        account_id: pod.account_id,
        password_sealed: sealing.seal(randomToken(random, PASSWORD_BYTES), id),
        made_at: null,
        cleaning_boot_id: null,
        removed_at: null,
        created_at: clock.now(),
      };
      await insertRepository(tx, row);
      return row;
    },

    /**
     * Returns location, credentials and password. `isMade`: false if the repository may not exist yet. Rejects if the
     * storage does not answer.
     */
    async access(
      id: string,
      rights: 'append' | 'full',
    ): Promise<RepositoryAccess & { isMade: boolean }> {
      const row = await findRepository(db, id);
      if (row === undefined || storage === null) throw new Error('there is no storage for backups');
      const place = await storage.place({ id, accountId: row.account_id }, rights);
      const password = sealing.open(row.password_sealed, id);
      return { ...place, password, isMade: row.made_at !== null };
    },
  };
}

/**
 * Returns the repository, locked until the transaction ends. Meanwhile other transactions begin neither an operation
 * nor a cleanup on it.
 */
export async function lockRepository(tx: Db, id: string): Promise<BackupRepository> {
  await lockRow(tx, 'backup_repositories', id);
  const row = await findRepository(tx, id);
  if (row === undefined) throw new Error(`the repository ${id} of a backup is missing`);
  return row;
}
