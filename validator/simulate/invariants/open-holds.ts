/** Open holds of the ledger, read from its journal. */
import type { Db } from '../../central/platform/database/tables.ts';

/** Returns the micro-dollars of each open hold, by hold id. */
export async function openHolds(db: Db): Promise<Map<string, number>> {
  const pending = await db
    .selectFrom('transfers')
    .leftJoin('transfers as ending', 'ending.pending_seq', 'transfers.seq')
    .select(['transfers.group_id', 'transfers.amount_uusd'])
    .where('transfers.kind', '=', 'pending')
    .where('ending.seq', 'is', null)
    .execute();
  const holds = new Map<string, number>();
  for (const { group_id, amount_uusd } of pending) {
    holds.set(String(group_id), (holds.get(String(group_id)) ?? 0) + amount_uusd);
  }
  return holds;
}
