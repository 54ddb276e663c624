/** What renters do with drills (marketplace reference 1.17). Effects on nodes are left to the sync. */
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Db } from '../platform/database/tables.ts';
import { lockRow } from '../platform/database/transactions.ts';
import type { Caller } from '../platform/identity.ts';
import { backupRow } from './backup.row.ts';
import type { BackupLogResponse } from './backup.schemas.ts';
import { requireOwnBackup } from './backup.service.ts';
import { busyError } from './backup-gate.ts';
import type { BackupRepositories } from './backup-repository.service.ts';
import { beginDrill } from './drill.begin.ts';
import { findDrillExecutor, findOpenDrill } from './drill.store.ts';

export type Drills = ReturnType<typeof createDrills>;

/** `executorId`: where one has begun. */
type Asked = { executorId: string | null; log: BackupLogResponse };

export function createDrills(deps: {
  clock: Clock;
  random: Random;
  repositories: BackupRepositories;
}) {
  const { clock, repositories } = deps;
  return {
    /**
     * In `tx`: reads a sample of a backup back on a node, without touching a pod; while that is under way already, as it stands.
     * Throws `bad_request` for one that holds nothing, `BACKUP_STORAGE_BUSY` while another operation runs on its pod.
     */
    async verify(tx: Db, { identity, actor }: Caller, id: string): Promise<Asked> {
      repositories.requireStorage();
      const { pod_id: podId } = await requireOwnBackup(tx, identity, id);
      await lockRow(tx, 'pods', podId);
      const backup = await requireOwnBackup(tx, identity, id);
      const asItStands = async (executorId: string | null): Promise<Asked> => ({
        executorId,
        log: backupRow(await requireOwnBackup(tx, identity, id), clock.now()),
      });
      if (backup.state !== 'COMPLETED') {
        throw new ApiError(
          'bad_request',
          `The backup is ${backup.state}: nothing can be read back`,
        );
      }
      if ((await findOpenDrill(tx, podId))?.backup_id === id) return asItStands(null);
      const executorId = await findDrillExecutor(tx, { id: podId, account_id: backup.account_id });
      const begun = await beginDrill(tx, deps, {
        backup,
        executorId,
        occasion: 'REQUESTED',
        actor,
      });
      if (begun !== null && 'activeId' in begun) throw busyError(begun);
      return asItStands(begun?.executor_id ?? null);
    },
  };
}
