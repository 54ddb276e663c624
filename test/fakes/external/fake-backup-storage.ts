/** Backup storage in memory, and a fake of the function that prunes its repositories. */
import type { BackupStorage, PruneRepository } from '../../../validator/central/platform/ports.ts';

export type FakeBackupStorage = ReturnType<typeof createFakeBackupStorage>;

export function createFakeBackupStorage() {
  /** Ids of removed repositories, in order. */
  const removed: string[] = [];
  /** Snapshots that each prune had to retain. */
  const pruned: string[][] = [];
  const state = {
    /** False: every call rejects. */
    isUp: true,
    /** Result of a prune, which waits until this promise resolves. */
    pruning: Promise.resolve(true),
  };
  const storage: BackupStorage = {
    async place(repository: { id: string; accountId: string }, rights: 'append' | 'full') {
      if (!state.isUp) throw new Error('the fake storage is down');
      const environment = {
        RESTIC_REST_USERNAME: rights,
        RESTIC_REST_PASSWORD: repository.accountId,
      };
      return { location: `rest:http://storage.test/${repository.id}/`, environment };
    },
    async bytesOf() {
      return null;
    },
    async remove(repositoryId: string) {
      if (!state.isUp) throw new Error('the fake storage is down');
      removed.push(repositoryId);
    },
  };
  const prune: PruneRepository = (_access, kept) => {
    pruned.push(kept.toSorted());
    return state.pruning;
  };
  return Object.assign(state, storage, { removed, pruned, prune });
}
