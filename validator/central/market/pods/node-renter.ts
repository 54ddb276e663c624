/** Renter of a backup or restore as the node receives it: the renters of a node take turns. */
import { createHash } from 'node:crypto';
import type { BackupRequestInput } from '#shared/api/agent/operations.ts';
import type { Db } from '../../platform/database/tables.ts';
import { listLiveOn } from './pod.store.ts';

const ID_CHARS = 32;

/** The id differs between nodes, so that providers cannot recognise an account on other nodes. */
export async function renterOn(
  db: Db,
  { account_id: accountId, executor_id: executorId }: { account_id: string; executor_id: string },
): Promise<NonNullable<BackupRequestInput['renter']>> {
  const hash = createHash('sha256').update(`${executorId} ${accountId}`).digest('hex');
  const pods = await listLiveOn(db, accountId, executorId);
  return { id: hash.slice(0, ID_CHARS), is_present: pods.length > 0 };
}
