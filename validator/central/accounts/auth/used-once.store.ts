/** Queries of the table of what hotkeys have signed and was taken once. */
import type { Db } from '../../platform/database/tables.ts';

/** False when this message of this hotkey is there already. */
export async function insertOnce(
  db: Db,
  row: { hotkey: string; message: string; expires_at: number },
): Promise<boolean> {
  const done = await db
    .insertInto('login_nonces')
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst();
  return (done.numInsertedOrUpdatedRows ?? 0n) > 0n;
}

/** Removes what expired before. */
export async function deleteUsedBefore(db: Db, nowMs: number): Promise<void> {
  await db.deleteFrom('login_nonces').where('expires_at', '<', nowMs).execute();
}
