/** What a hotkey has signed is taken once: a second request with it is somebody else's copy. */
import type { Db } from '../../platform/database/tables.ts';
import { insertOnce } from './used-once.store.ts';

/** Set before a signature, in the table that log-ins use too, whose messages are digits. */
const PREFIX = 'signature:';

/** False when it was used before. `signature` is hex in lower case. */
export function spendSignature(
  db: Db,
  { hotkey, signature, expiresAtMs }: { hotkey: string; signature: string; expiresAtMs: number },
): Promise<boolean> {
  return insertOnce(db, { hotkey, message: PREFIX + signature, expires_at: expiresAtMs });
}

/** The same of a log-in to the portal, by its message: who signs it twice gets two signatures, and one log-in. */
export function spendLogin(
  db: Db,
  { hotkey, message, expiresAtMs }: { hotkey: string; message: string; expiresAtMs: number },
): Promise<boolean> {
  return insertOnce(db, { hotkey, message, expires_at: expiresAtMs });
}
