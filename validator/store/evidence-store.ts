/**
 * The evidence store: the validator's database, either a SQLite file or a PostgreSQL database that several processes
 * share. This file opens the store, migrates its schema, summarizes it and probes it.
 */
import { existsSync } from 'node:fs';
import { sql } from 'kysely';
import { ConfigError } from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { isDiskFull } from '#shared/runtime/sqlite.ts';
import { isPostgres } from '../database/engine.ts';
import type { MovableKind } from '../database/move/move-database.ts';
import {
  type DatabaseTarget,
  isPostgresAddress,
  markCreated,
  openDatabase,
} from '../database/open-database.ts';
import { beginMigration, type DatabaseLocation } from '../database/ownership.ts';
import { countRows, type RowCount } from '../database/row-counts.ts';
import { MIGRATIONS, POSTGRES_DIALECT, SQLITE_DIALECT } from './migrations.ts';
import type { EvidenceStore, StoreDb, Tables } from './tables.ts';

const IDENTITY = { applicationName: 'podwright-validator', kind: 'evidence' } as const;

/** Address of a store, and the variable or option that set it. */
export type StoreLocation = Pick<DatabaseTarget, 'address' | 'variable'>;

/**
 * Opens and migrates the store at `address`: a file, `:memory:`, `:temporary:` or `postgres://…`. The caller closes
 * it with `destroy()`. Rejects as `openDatabase` does, and with ConfigError for a store of a newer version.
 */
export async function openEvidenceStore(
  address: string,
  variable = 'VALIDATOR_DATABASE',
  options: Pick<DatabaseTarget, 'damage' | 'limits' | 'through'> = {},
): Promise<EvidenceStore> {
  const target = { address, variable, ...IDENTITY };
  const store = await openDatabase<Tables>({ ...target, ...options });
  try {
    await migrate(store, target);
    markCreated(target);
    return store;
  } catch (error) {
    await store.destroy();
    throw error;
  }
}

/**
 * Runs `work` on an existing store without migrating it, even while a validator runs on the same store. Rejects as
 * `openDatabase` does, and with ConfigError if there is no store or if the store has another schema version.
 */
export async function withStore<T>(
  location: StoreLocation,
  use: 'read' | 'write',
  work: (store: EvidenceStore) => Promise<T>,
): Promise<T> {
  const { address } = location;
  if (!isPostgresAddress(address) && !existsSync(address)) {
    throw new ConfigError(
      `there is no evidence store at ${address}: name it with --ledger FILE; npm start uses validator.db in its home folder`,
    );
  }
  const target = { ...location, ...IDENTITY, mustExist: true } as const;
  const store = await openDatabase<Tables>(use === 'read' ? { ...target, readOnly: true } : target);
  try {
    await requireCurrentSchema(store);
    return await work(store);
  } finally {
    await store.destroy();
  }
}

async function requireCurrentSchema(store: EvidenceStore): Promise<void> {
  const present = Number(await readSchema(store));
  const known = MIGRATIONS.length;
  if (present === known) return;
  const remedy =
    present > known
      ? 'run a newer version'
      : 'start a validator of this version on the store, or on a copy, to migrate the schema';
  throw new ConfigError(
    `the evidence store has schema ${present}, this program reads ${known}: ${remedy}`,
  );
}

/** The store as a kind of database that can be moved to PostgreSQL. */
export const EVIDENCE_MOVE: MovableKind<Tables> = {
  kind: 'evidence',
  schema: MIGRATIONS.length,
  schemaOf: async (store) => Number(await readSchema(store)),
  open: openEvidenceStore,
  assigned: {},
  audit: null,
};

/** Returns true if other processes may use the same store. */
export const isShared = (store: StoreDb): boolean => isPostgres(store);

async function migrate(store: EvidenceStore, location: DatabaseLocation): Promise<void> {
  const dialect = isShared(store) ? POSTGRES_DIALECT : SQLITE_DIALECT;
  await store.transaction().execute(async (tx) => {
    await beginMigration(tx, location);
    if (isShared(tx)) await createSchemaTable(tx);
    const present = await readSchema(tx);
    if (present > MIGRATIONS.length) {
      throw new ConfigError(
        `the evidence store has schema ${present}, this program supports ${MIGRATIONS.length}: run a newer version`,
      );
    }
    for (const migration of MIGRATIONS.slice(present)) {
      for (const statement of migration(dialect)) await sql.raw(statement).execute(tx);
    }
    await setSchema(tx, MIGRATIONS.length);
  });
}

/** Schema number: `user_version` on SQLite, a table on PostgreSQL. 0 for an empty store. */
export async function readSchema(tx: StoreDb): Promise<number> {
  if (!isShared(tx)) {
    const { rows } = await sql<{ user_version: number }>`pragma user_version`.execute(tx);
    return rows[0]?.user_version ?? 0;
  }
  const { rows } = await sql<{ number: number }>`select number from ledger_schema`.execute(tx);
  return rows[0]?.number ?? 0;
}

async function createSchemaTable(tx: StoreDb): Promise<void> {
  await sql`create table if not exists ledger_schema (number bigint not null)`.execute(tx);
}

async function setSchema(tx: StoreDb, number: number): Promise<void> {
  if (!isShared(tx)) {
    await sql.raw(`pragma user_version = ${number}`).execute(tx);
    return;
  }
  await sql`delete from ledger_schema`.execute(tx);
  await sql`insert into ledger_schema (number) values (${number})`.execute(tx);
}

export type StoreSummary = {
  /** Schema of the store; `known` is the newest schema of this program. */
  schema: number;
  known: number;
  tables: readonly RowCount[];
};

/**
 * Counts the rows of each table without writing or migrating, also while a validator runs on the store. Returns null if
 * there is no store yet. Rejects if the store cannot be read; with ConfigError for any other database and for an
 * unusable server.
 */
export async function summarizeStore(address: string): Promise<StoreSummary | null> {
  // Opening a SQLite file would create it.
  if (!isPostgresAddress(address) && !existsSync(address)) return null;
  const store = await openDatabase<Tables>({
    address,
    variable: 'VALIDATOR_DATABASE',
    ...IDENTITY,
    readOnly: true,
  });
  try {
    const tables = await countRows(store);
    const schema = tables.length === 0 ? 0 : Number(await readSchema(store));
    return { schema, known: MIGRATIONS.length, tables };
  } finally {
    await store.destroy();
  }
}

/**
 * Reads the schema number and writes it back, which costs one page. Returns the error message. Returns null if both
 * worked, and for faults that a restart does not repair: a full disk, or a PostgreSQL server, which is monitored
 * separately.
 */
export async function probeStore(store: EvidenceStore): Promise<string | null> {
  if (isShared(store)) return null;
  try {
    const { rows } = await sql<{ user_version: number }>`pragma user_version`.execute(store);
    const present = Number(rows[0]?.user_version);
    await sql.raw(`pragma user_version = ${present}`).execute(store);
    return null;
  } catch (error) {
    return isDiskFull(error) ? null : messageOf(error);
  }
}
