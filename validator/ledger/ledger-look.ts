/** A look into a ledger that changes nothing, not its schema either: for doctor and diagnosis, beside a running validator. */
import { existsSync } from 'node:fs';
import { Kysely, sql } from 'kysely';
import { dialectOf, isPostgresAddress } from '../database/target.ts';
import { MIGRATIONS } from './ledger.migrations.ts';
import type { Ledger } from './ledger.tables.ts';
import { isShared, KNOWN_AS, schemaOf } from './ledger.ts';

export type LedgerLook = {
  /** Of the ledger, and the newest that this program knows. */
  schema: number;
  known: number;
  tables: readonly { name: string; rows: number }[];
};

/** Null where there is no ledger yet. Rejects when it cannot be read; ConfigError where a server cannot be used. */
export async function lookIntoLedger(address: string): Promise<LedgerLook | null> {
  // To open a file is to make it.
  if (!isPostgresAddress(address) && !existsSync(address)) return null;
  const ledger: Ledger = new Kysely({ dialect: await dialectOf({ address, ...KNOWN_AS }) });
  try {
    const names = await tablesOf(ledger);
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

async function tablesOf(ledger: Ledger): Promise<string[]> {
  const query = isShared(ledger)
    ? sql<{ name: string }>`select table_name as name from information_schema.tables
        where table_schema = current_schema() order by table_name`
    : sql<{ name: string }>`select name from sqlite_master
        where type = 'table' and name not like 'sqlite_%' order by name`;
  const { rows } = await query.execute(ledger);
  return rows.map(({ name }) => name);
}
