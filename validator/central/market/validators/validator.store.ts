/** Queries of the set_weights table, with one row for each validator, and of the validator_accounts table. */
import { prepared, type Slots } from '../../platform/database/prepared.ts';
import type { SetWeightsTable } from '../../platform/database/tables/executors.ts';
import type { Db } from '../../platform/database/tables.ts';

/** Stores the row and returns true, unless the stored row is equally old or newer. */
export async function putSetWeights(db: Db, row: SetWeightsTable): Promise<boolean> {
  const { validator_hotkey: _, ...changed } = row;
  const { numInsertedOrUpdatedRows: count = 0n } = await db
    .insertInto('set_weights')
    .values(row)
    .onConflict((conflict) =>
      conflict
        .column('validator_hotkey')
        .doUpdateSet(changed)
        .where('set_weights.updated_at_micros', '<', row.updated_at_micros),
    )
    .executeTakeFirstOrThrow();
  return count > 0n;
}

/** Finds the weights of one validator, or the newest of all validators if `hotkey` is null. */
export function findSetWeights(
  db: Db,
  hotkey: string | null,
): Promise<SetWeightsTable | undefined> {
  const rows = db
    .selectFrom('set_weights')
    .selectAll()
    .orderBy('updated_at_micros', 'desc')
    .orderBy('validator_hotkey');
  const wanted = hotkey === null ? rows : rows.where('validator_hotkey', '=', hotkey);
  return wanted.limit(1).executeTakeFirst();
}

const hotkeyOf = prepared((db, { accountId }: Slots<{ accountId: string }>) =>
  db.selectFrom('validator_accounts').select('hotkey').where('account_id', '=', accountId),
);

/** Finds the hotkey that an account has proven. */
export async function findHotkey(db: Db, accountId: string): Promise<string | undefined> {
  return (await hotkeyOf(db, { accountId })).rows[0]?.hotkey;
}

/** Replaces the account's hotkey, and removes the hotkey from any other account, because the last proof counts. */
export async function putHotkey(
  tx: Db,
  row: { hotkey: string; account_id: string; proven_at: number },
): Promise<void> {
  await deleteHotkey(tx, row.account_id);
  const { account_id, proven_at } = row;
  await tx
    .insertInto('validator_accounts')
    .values(row)
    .onConflict((conflict) => conflict.column('hotkey').doUpdateSet({ account_id, proven_at }))
    .execute();
}

export async function deleteHotkey(tx: Db, accountId: string): Promise<void> {
  await tx.deleteFrom('validator_accounts').where('account_id', '=', accountId).execute();
}
