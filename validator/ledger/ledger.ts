/** Opens the validator's ledger, one SQLite file or a PostgreSQL database that several validators share, and brings its schema up to date. */
import { sql } from 'kysely';
import { isPostgres } from '../database/engine.ts';
import { beginMigration } from '../database/ownership.ts';
import { openDatabase } from '../database/target.ts';
import { MIGRATIONS, POSTGRES_WORDS, SQLITE_WORDS } from './ledger.migrations.ts';
import type { Ledger, LedgerDb, Tables } from './ledger.tables.ts';

/** For whoever opens it. */
export const KNOWN_AS = {
  variable: 'VALIDATOR_DATABASE',
  applicationName: 'podwright-validator',
  kind: 'ledger',
} as const;

/**
 * `address` is a file, `:memory:` or `postgres://…`. The caller ends it with `destroy()`. Rejects for a ledger of a
 * newer version, and with ConfigError for a database of something else and when a PostgreSQL server cannot be used.
 */
export async function openLedger(address: string): Promise<Ledger> {
  const ledger = await openDatabase<Tables>({ address, ...KNOWN_AS });
  try {
    await migrate(ledger, address);
    return ledger;
  } catch (error) {
    await ledger.destroy();
    throw error;
  }
}

/** Whether other processes may be at work on it. */
export const isShared = (ledger: LedgerDb): boolean => isPostgres(ledger);

async function migrate(ledger: Ledger, address: string): Promise<void> {
  const words = isShared(ledger) ? POSTGRES_WORDS : SQLITE_WORDS;
  await ledger.transaction().execute(async (tx) => {
    await beginMigration(tx, { address, ...KNOWN_AS });
    if (isShared(tx)) await makeSchemaTable(tx);
    const present = await schemaOf(tx);
    if (present > MIGRATIONS.length) {
      throw new Error(
        `the ledger has schema ${present}, this program knows ${MIGRATIONS.length}: run a newer version`,
      );
    }
    for (const migration of MIGRATIONS.slice(present)) {
      for (const statement of migration(words)) await sql.raw(statement).execute(tx);
    }
    await keepSchema(tx, MIGRATIONS.length);
  });
}

/** SQLite keeps the number in `user_version`, PostgreSQL in a table; 0 for a ledger that is empty. */
export async function schemaOf(tx: LedgerDb): Promise<number> {
  if (!isShared(tx)) {
    const { rows } = await sql<{ user_version: number }>`pragma user_version`.execute(tx);
    return rows[0]?.user_version ?? 0;
  }
  const { rows } = await sql<{ number: number }>`select number from ledger_schema`.execute(tx);
  return rows[0]?.number ?? 0;
}

/** The table that PostgreSQL's number lies in. */
async function makeSchemaTable(tx: LedgerDb): Promise<void> {
  await sql`create table if not exists ledger_schema (number bigint not null)`.execute(tx);
}

async function keepSchema(tx: LedgerDb, number: number): Promise<void> {
  if (!isShared(tx)) {
    await sql.raw(`pragma user_version = ${number}`).execute(tx);
    return;
  }
  await sql`delete from ledger_schema`.execute(tx);
  await sql`insert into ledger_schema (number) values (${number})`.execute(tx);
}
