/** A look into a ledger that changes nothing, not its schema either: for doctor and diagnosis, beside a running validator. */
import { existsSync } from 'node:fs';
import { sql } from 'kysely';
import { tablesIn } from '../database/ownership.ts';
import { isPostgresAddress, openDatabase } from '../database/target.ts';
import { MIGRATIONS } from './ledger.migrations.ts';
import type { Tables } from './ledger.tables.ts';
import { KNOWN_AS, schemaOf } from './ledger.ts';

export type LedgerLook = {
  /** Of the ledger, and the newest that this program knows. */
  schema: number;
  known: number;
  tables: readonly { name: string; rows: number }[];
};

/** Null where there is no ledger yet. Rejects when it cannot be read; ConfigError for something else and for a server that cannot be used. */
export async function lookIntoLedger(address: string): Promise<LedgerLook | null> {
  // To open a file is to make it.
  if (!isPostgresAddress(address) && !existsSync(address)) return null;
  const ledger = await openDatabase<Tables>({
    address,
    variable: 'VALIDATOR_DATABASE',
    ...KNOWN_AS,
    onlyReads: true,
  });
  try {
    const names = await tablesIn(ledger);
    const isEmpty = names.length === 0;
    const tables: { name: string; rows: number }[] = [];
    for (const name of names) {
      const { rows } = await sql<{
        found: number;
      }>`select count(*) as found from ${sql.table(name)}`.execute(ledger);
      tables.push({ name, rows: Number(rows[0]?.found) });
    }
    const schema = isEmpty ? 0 : Number(await schemaOf(ledger));
    return { schema, known: MIGRATIONS.length, tables };
  } finally {
    await ledger.destroy();
  }
}
