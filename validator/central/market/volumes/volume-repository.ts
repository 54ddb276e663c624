/** What opens the repository of a volume, in which it lies while no pod has it. */
import type { RepositoryAccess } from '#shared/api/agent/operations.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { type Random, randomToken } from '#shared/runtime/random.ts';
import { createSealing } from '#shared/signing/sealing.ts';
import { deriveKey } from '../../accounts/auth/derived-key.ts';
import type { Volume } from '../../platform/database/tables.ts';
import type { BackupStorage } from '../../platform/ports.ts';

const PASSWORD_BYTES = 32;

export type VolumeRepositories = ReturnType<typeof createVolumeRepositories>;

export function createVolumeRepositories(deps: {
  random: Random;
  secret: Uint8Array;
  /** Null: volumes can neither be made nor saved. */
  storage: BackupStorage | null;
}) {
  const { random, storage } = deps;
  const key = deriveKey(deps.secret, 'volume-repository-sealing');
  const sealing = createSealing({ key, random });

  return {
    /** Throws 400 `bad_request` where volumes have no place to lie. */
    requireStorage(): void {
      if (storage !== null) return;
      throw new ApiError('bad_request', 'This marketplace has no storage for volumes', {
        hint: 'Ask the operator for backup storage.',
      });
    },

    /** The sealed password of a new volume's. */
    newPassword: (volumeId: string): string =>
      sealing.seal(randomToken(random, PASSWORD_BYTES), volumeId),

    /** Rejects when the storage does not answer. */
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
