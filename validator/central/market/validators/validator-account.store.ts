/** All queries on validator_accounts. */
import type { Db } from '../../platform/database/tables.ts';

/** The hotkey that an account has proven; undefined where it has none. */
export async function findHotkey(db: Db, accountId: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('validator_accounts')
    .select('hotkey')
    .where('account_id', '=', accountId)
    .executeTakeFirst();
  return row?.hotkey;
}

/** The last proof counts: another account loses the hotkey, this one whatever it had. */
export async function putHotkey(
  tx: Db,
  row: { hotkey: string; account_id: string; proven_at: number },
): Promise<void> {
  await dropHotkey(tx, row.account_id);
  const { account_id, proven_at } = row;
  await tx
    .insertInto('validator_accounts')
    .values(row)
    .onConflict((conflict) => conflict.column('hotkey').doUpdateSet({ account_id, proven_at }))
    .execute();
}

export async function dropHotkey(tx: Db, accountId: string): Promise<void> {
  await tx.deleteFrom('validator_accounts').where('account_id', '=', accountId).execute();
}
