/** The central API's database in tests: SQLite in memory, or PostgreSQL in the Vitest project `postgres`. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CompiledQuery, Kysely, type KyselyPlugin, sql } from 'kysely';
import { Client } from 'pg';
import { inject } from 'vitest';
import { systemRandom } from '#shared/runtime/random.ts';
import { type DatabaseSync, openSqlite } from '#shared/runtime/sqlite.ts';
import { openCentralDatabase } from '../../../validator/central/platform/database/database.ts';
import type { Database, Db, Tables } from '../../../validator/central/platform/database/tables.ts';
import { isPostgres } from '../../../validator/database/engine.ts';
import { dialectOver } from '../../../validator/database/node-sqlite-dialect.ts';
import { postgresUrl } from '../external/postgres-server.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Folder of the PostgreSQL server of this test run; absent where tests use SQLite. */
    centralDatabase: string;
  }
}

/** Database with the current schema; every test file uses clones of it. */
export const TEMPLATE_DATABASE = 'podwright_template';

const SCHEMA = `select string_agg(quote_ident(tablename), ',' order by tablename) as tables,
    (select value from meta where name = 'schema') as version
  from pg_tables where schemaname = 'public' and tablename <> 'meta'`;

type Schema = { tables: string; version: string };
type Clone = Schema & { url: string; restoration: string };

/** Unused clones of this test file: clearing a clone takes 3 ms, creating one takes 300 ms. */
const idle: Clone[] = [];

/** Returns true if the tests run on PostgreSQL. */
export function onPostgres(): boolean {
  return inject('centralDatabase') !== undefined;
}

/** Creates an empty database with the current schema. The caller must call `destroy()`. */
export async function createTestDatabase(): Promise<Database> {
  if (!onPostgres()) return inMemory();
  const clone = (await emptiedClone()) ?? (await newClone());
  const db = await openCentralDatabase(clone.url);
  const destroy = db.destroy.bind(db);
  let isIdle = false;
  return Object.assign(db, {
    async destroy() {
      await destroy();
      // If a clone were destroyed twice, two tests would receive the same clone.
      if (!isIdle) idle.push(clone);
      isIdle = true;
    },
  });
}

/** The migrated schema, serialized by SQLite. Migrating takes 45 ms. */
let migrated: Uint8Array | undefined;

async function inMemory(): Promise<Database> {
  migrated ??= await migratedImage();
  const database = openSqlite(':memory:');
  database.deserialize(migrated);
  return handleOf(database);
}

/**
 * Returns a handle of an open SQLite file with the schema of the central API. `destroy()` closes the file.
 * `beforeBegin` runs before each transaction.
 */
export function handleOf(file: DatabaseSync, beforeBegin?: () => void): Database {
  return new Kysely<Tables>({ dialect: dialectOver(file, beforeBegin) });
}

/** Runs a statement of the engine that no store has, such as a lock or an analysis. */
export async function runSql(db: Db, text: string): Promise<Record<string, unknown>[]> {
  return (await sql.raw<Record<string, unknown>>(text).execute(db)).rows;
}

/** Returns the lines of the engine's plan of the first query that `work` sends. */
export async function planOf(db: Database, work: (db: Db) => Promise<unknown>): Promise<string[]> {
  const sent: CompiledQuery[] = [];
  const listen: KyselyPlugin = {
    transformQuery({ node, queryId }) {
      sent.push(db.getExecutor().compileQuery(node, queryId));
      return node;
    },
    transformResult: async ({ result }) => result,
  };
  await work(db.withPlugin(listen));
  const [query = CompiledQuery.raw('')] = sent;
  const explain = isPostgres(db) ? 'explain' : 'explain query plan';
  const plan = CompiledQuery.raw(`${explain} ${query.sql}`, [...query.parameters]);
  const { rows } = await db.executeQuery<Record<string, unknown>>(plan);
  return rows.map((row) => String(row['detail'] ?? row['QUERY PLAN']));
}

async function migratedImage(): Promise<Uint8Array> {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-schema-'));
  const path = join(folder, 'central.sqlite');
  const db = await openCentralDatabase(':memory:');
  try {
    await sql`vacuum into ${path}`.execute(db);
    return new Uint8Array(readFileSync(path));
  } finally {
    await db.destroy();
    rmSync(folder, { recursive: true });
  }
}

/**
 * Creates a database on the test server that several processes can share, and returns its URL. It is removed with the
 * server.
 */
export async function createPostgresDatabase(): Promise<string> {
  return (await newClone()).url;
}

/** Creates a database on the test server without tables, and returns its URL. */
export const createEmptyPostgresDatabase = (): Promise<string> => newDatabase('template0');

async function newDatabase(template: string): Promise<string> {
  const folder = inject('centralDatabase');
  const name = `test_${systemRandom.uuid().replaceAll('-', '')}`;
  await query(postgresUrl(folder, 'postgres'), async (client) => {
    await client.query(`create database ${name} template ${template}`);
  });
  return postgresUrl(folder, name);
}

async function newClone(): Promise<Clone> {
  const url = await newDatabase(TEMPLATE_DATABASE);
  return query(url, async (client) => {
    const schema = await schemaOf(client);
    return { url, ...schema, restoration: await restorationOf(client, schema) };
  });
}

/** Returns the statements that insert the rows of a new database, which migrations have written. */
async function restorationOf(client: Client, { tables }: Schema): Promise<string> {
  const statements: string[] = [];
  for (const table of tables.split(',')) {
    const { rows } = await client.query<{ statement: string | null }>(
      `select format('insert into %s select * from json_populate_recordset(null::%s, %L)',
        '${table}', '${table}', json_agg(present)) as statement from ${table} present having count(*) > 0`,
    );
    for (const { statement } of rows) if (statement !== null) statements.push(statement);
  }
  return statements.join(';');
}

/** Clears an idle clone. Returns null when there is none, or when the last test changed its schema. */
async function emptiedClone(): Promise<Clone | null> {
  const clone = idle.pop();
  if (clone === undefined) return null;
  return query(clone.url, async (client) => {
    const { tables, version } = await schemaOf(client);
    if (tables !== clone.tables || version !== clone.version) return null;
    const deletions = clone.tables.split(',').map((table) => `delete from ${table}`);
    // PostgreSQL implements foreign keys as triggers: with triggers off, tables can be cleared in any order.
    const statements = ['set session_replication_role = replica', ...deletions, clone.restoration];
    await client.query(statements.join(';'));
    return clone;
  });
}

async function schemaOf(client: Client): Promise<Schema> {
  const [schema] = (await client.query<Schema>(SCHEMA)).rows;
  if (schema === undefined) throw new Error('the database has no schema');
  return schema;
}

async function query<T>(url: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
