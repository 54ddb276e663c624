/** Rejects replays: each signature is accepted once, and so is each log-in message of a hotkey. */
import type { Db } from '../../platform/database/tables.ts';

/** Prefix of signatures in the table. Log-in messages in the same table consist of digits. */
const SIGNATURE_PREFIX = 'signature:';

/** Returns false if the signature was used before. `signature` is lower-case hex. */
export function spendSignature(
  db: Db,
  { hotkey, signature, expiresAtMs }: { hotkey: string; signature: string; expiresAtMs: number },
): Promise<boolean> {
  const message = SIGNATURE_PREFIX + signature;
  return insertOnce(db, { hotkey, message, expires_at: expiresAtMs });
}

/** Returns false if the hotkey has already logged in with this message, even with another signature over it. */
export function spendLogin(
  db: Db,
  { hotkey, message, expiresAtMs }: { hotkey: string; message: string; expiresAtMs: number },
): Promise<boolean> {
  return insertOnce(db, { hotkey, message, expires_at: expiresAtMs });
}

async function insertOnce(
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

/** Deletes records that expired before `nowMs`. */
export async function deleteExpiredUses(db: Db, nowMs: number): Promise<void> {
  await db.deleteFrom('login_nonces').where('expires_at', '<', nowMs).execute();
}
