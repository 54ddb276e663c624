/** Signatures that were taken once: a second request with one is somebody else's copy. */
import type { Db } from '../db/tables.ts';

/** Set before the signature, in the table that the portal's log-ins use too, whose messages are digits. */
const PREFIX = 'signature:';

/** False when it was used before. `signature` is hex in lower case. */
export async function spendSignature(
  db: Db,
  { hotkey, signature, expiresAtMs }: { hotkey: string; signature: string; expiresAtMs: number },
): Promise<boolean> {
  const done = await db
    .insertInto('login_nonces')
    .values({ hotkey, message: PREFIX + signature, expires_at: expiresAtMs })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst();
  return (done.numInsertedOrUpdatedRows ?? 0n) > 0n;
}

/** Removes those whose time is too old to be accepted anyway, and the log-ins of the portal that are. */
export async function dropSpentSignatures(db: Db, nowMs: number): Promise<void> {
  await db.deleteFrom('login_nonces').where('expires_at', '<', nowMs).execute();
}
