/** Rejects replays: each signature is accepted once, and so is each log-in message of a hotkey. */
import { prepared, type Slots } from '../../platform/database/prepared.ts';
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

type Use = { hotkey: string; message: string; expires_at: number };

const insertUse = prepared((db, { hotkey, message, expires_at }: Slots<Use>) =>
  db
    .insertInto('login_nonces')
    .values({ hotkey, message, expires_at })
    .onConflict((conflict) => conflict.doNothing()),
);

async function insertOnce(db: Db, use: Use): Promise<boolean> {
  const { numAffectedRows = 0n } = await insertUse(db, use);
  return numAffectedRows > 0n;
}

/** Deletes records that expired before `nowMs`. */
export async function deleteExpiredUses(db: Db, nowMs: number): Promise<void> {
  await db.deleteFrom('login_nonces').where('expires_at', '<', nowMs).execute();
}
