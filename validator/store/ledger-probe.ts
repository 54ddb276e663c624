/** Whether the validator's ledger still takes and gives. */
import { sql } from 'kysely';
import { messageOf } from '#shared/runtime/errors.ts';
import { isDiskFull } from '#shared/runtime/sqlite.ts';
import type { Ledger } from './ledger.tables.ts';
import { isShared } from './ledger.ts';

/**
 * Reads the schema's number and writes it as it is, which costs a page; why that did not work, in words. Null where no
 * restart would help: for a full disk, and for a server, which is others' to look after.
 */
export async function problemOfLedger(ledger: Ledger): Promise<string | null> {
  if (isShared(ledger)) return null;
  try {
    const { rows } = await sql<{ user_version: number }>`pragma user_version`.execute(ledger);
    const present = Number(rows[0]?.user_version);
    await sql.raw(`pragma user_version = ${present}`).execute(ledger);
    return null;
  } catch (error) {
    return isDiskFull(error) ? null : messageOf(error);
  }
}
