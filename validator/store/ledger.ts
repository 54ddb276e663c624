/** Opens the validator's ledger, one SQLite file or a PostgreSQL database that several validators share, and brings its schema up to date. */
import { sql } from 'kysely';
import { ConfigError } from '#shared/runtime/config.ts';
import { isPostgres } from '../database/engine.ts';
import { beginMigration, type OwnPlace } from '../database/ownership.ts';
import { type DatabaseTarget, openDatabase } from '../database/target.ts';
import { MIGRATIONS, POSTGRES_WORDS, SQLITE_WORDS } from './ledger.migrations.ts';
import type { Ledger, LedgerDb, Tables } from './ledger.tables.ts';

/** For whoever opens it. */
export const KNOWN_AS = { applicationName: 'podwright-validator', kind: 'ledger' } as const;

/** Where a ledger is: its address, and the variable or option that says so. */
export type LedgerPlace = Pick<DatabaseTarget, 'address' | 'variable'>;

/**
 * `address` is a file, `:memory:` or `postgres://…`. The caller ends it with `destroy()`. Rejects as `openDatabase` does,
 * and with ConfigError for a ledger of a newer version.
 */
export async function openLedger(
  address: string,
  variable = 'VALIDATOR_DATABASE',
): Promise<Ledger> {
  const target = { address, variable, ...KNOWN_AS };
  const ledger = await openDatabase<Tables>(target);
  try {
    await migrate(ledger, target);
    return ledger;
  } catch (error) {
    await ledger.destroy();
    throw error;
  }
}

/**
 * Work on a ledger that is there, beside a validator that may be running on it; its schema stays as it is, and all of it
 * unless `use` is to write. Rejects as `openDatabase` does, and with ConfigError where there is no ledger of this schema.
 */
export async function besideLedger<T>(
  place: LedgerPlace,
  use: 'read' | 'write',
  work: (ledger: Ledger) => Promise<T>,
): Promise<T> {
  const target = { ...place, ...KNOWN_AS, isThere: true } as const;
  const ledger = await openDatabase<Tables>(
    use === 'read' ? { ...target, onlyReads: true } : target,
  );
  try {
    await requireSchema(ledger);
    return await work(ledger);
  } finally {
    await ledger.destroy();
  }
}

async function requireSchema(ledger: Ledger): Promise<void> {
  const present = Number(await schemaOf(ledger));
  const known = MIGRATIONS.length;
  if (present === known) return;
  const remedy =
    present > known
      ? 'run a newer version'
      : 'start a validator of this version on it, or on a copy, which brings it up to date';
  throw new ConfigError(`the ledger has schema ${present}, this program reads ${known}: ${remedy}`);
}

/** Whether other processes may be at work on it. */
export const isShared = (ledger: LedgerDb): boolean => isPostgres(ledger);

async function migrate(ledger: Ledger, place: OwnPlace): Promise<void> {
  const words = isShared(ledger) ? POSTGRES_WORDS : SQLITE_WORDS;
  await ledger.transaction().execute(async (tx) => {
    await beginMigration(tx, place);
    if (isShared(tx)) await makeSchemaTable(tx);
    const present = await schemaOf(tx);
    if (present > MIGRATIONS.length) {
      throw new ConfigError(
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
