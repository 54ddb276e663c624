/** Queries of the support_channels table. */
import type { Db, SupportChannelRow } from '../../platform/database/tables.ts';

/** Stores the channel of a pod; false when the pod has one already, which stays as it is. */
export async function insertChannel(db: Db, row: SupportChannelRow): Promise<boolean> {
  const done = await db
    .insertInto('support_channels')
    .values(row)
    .onConflict((conflict) => conflict.column('pod_id').doNothing())
    .executeTakeFirst();
  return (done.numInsertedOrUpdatedRows ?? 0n) > 0n;
}

/** The channel of a pod. */
export function findChannel(db: Db, podId: string): Promise<SupportChannelRow | undefined> {
  return db
    .selectFrom('support_channels')
    .selectAll()
    .where('pod_id', '=', podId)
    .executeTakeFirst();
}

/** Takes away who an account was on the chat platform and what it wrote. */
export async function clearChannels(db: Db, accountId: string): Promise<void> {
  await db
    .updateTable('support_channels')
    .set({ chat_user_id: null, topic: null, message: null })
    .where('account_id', '=', accountId)
    .execute();
}
