/** Queries of the support_channels table. */
import type { Db, SupportChannelRow } from '../../platform/database/tables.ts';

/** Inserts the channel of a pod. If the pod already has a channel, returns false and leaves it unchanged. */
export async function insertChannel(db: Db, row: SupportChannelRow): Promise<boolean> {
  const done = await db
    .insertInto('support_channels')
    .values(row)
    .onConflict((conflict) => conflict.column('pod_id').doNothing())
    .executeTakeFirst();
  return (done.numInsertedOrUpdatedRows ?? 0n) > 0n;
}

export function findChannel(db: Db, podId: string): Promise<SupportChannelRow | undefined> {
  return db
    .selectFrom('support_channels')
    .selectAll()
    .where('pod_id', '=', podId)
    .executeTakeFirst();
}

/** Clears an account's chat user, topics and messages. */
export async function clearChannelsOf(db: Db, accountId: string): Promise<void> {
  await db
    .updateTable('support_channels')
    .set({ chat_user_id: null, topic: null, message: null })
    .where('account_id', '=', accountId)
    .execute();
}
