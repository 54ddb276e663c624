/** Kysely's SQLite dialect over node:sqlite, for the central API and the evidence store. */
import {
  type Driver,
  type LimitNode,
  type QueryCompiler,
  SqliteDialect,
  SqliteQueryCompiler,
  type SqliteStatement,
} from 'kysely';
import { type DatabaseSync, isTransient, openSqlite } from '#shared/runtime/sqlite.ts';
import { useReserve } from './disk-reserve.ts';
import { PatientDriver } from './patient-driver.ts';
import { isUrgent } from './urgent.ts';

/**
 * Maximum number of cached statements; beyond it the oldest is dropped. The product has a few hundred distinct ones.
 */
const STATEMENT_CACHE_SIZE = 1_000;

/**
 * Pages written between two checkpoints: 16 MiB. A checkpoint copies each page once however often it was written, and
 * one rental writes twenty pages.
 */
const CHECKPOINT_PAGES = 4_000;

type Parameters = readonly (string | number | bigint | null | Uint8Array)[];

export function nodeSqliteDialect(path: string): SqliteDialect {
  const beforeBegin = () => {
    if (!isTransient(path) && isUrgent()) useReserve(path);
  };
  return dialectOver(openSqlite(path), beforeBegin);
}

/**
 * Wraps an open database and closes it at the end. Transactions begin with IMMEDIATE, so that no transaction fails to
 * get the write lock after it has begun. `beforeBegin` runs before each transaction.
 */
export function dialectOver(database: DatabaseSync, beforeBegin?: () => void): SqliteDialect {
  database.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
  // The driver waits instead, because SQLite would block the event loop.
  database.exec('PRAGMA busy_timeout = 0');
  const cache = new Map<string, SqliteStatement>();
  const config = {
    database: {
      close: () => database.close(),
      prepare: (sql: string) => preparedOnce(database, cache, sql),
    },
  };
  return new PatientDialect(config, beforeBegin);
}

class PatientDialect extends SqliteDialect {
  readonly #driver: PatientDriver;

  constructor(config: ConstructorParameters<typeof SqliteDialect>[0], beforeBegin?: () => void) {
    super(config);
    this.#driver = new PatientDriver(config, beforeBegin);
  }

  override createDriver(): Driver {
    return this.#driver;
  }

  override createQueryCompiler(): QueryCompiler {
    return new StableLimitCompiler();
  }
}

/**
 * Compiles limits as expressions. If a limit is a parameter alone, SQLite prepares the statement again for each run,
 * because the plan depends on the value, which takes about ten times as long as the query.
 */
class StableLimitCompiler extends SqliteQueryCompiler {
  protected override visitLimit(node: LimitNode): void {
    super.visitLimit(node);
    this.append(' + 0');
  }
}

function prepare(database: DatabaseSync, sql: string): SqliteStatement {
  const statement = database.prepare(sql);
  return {
    reader: statement.columns().length > 0,
    all: (parameters) => statement.all(...(parameters as Parameters)),
    run: (parameters) => {
      const { changes, lastInsertRowid } = statement.run(...(parameters as Parameters));
      return { changes, lastInsertRowid };
    },
    iterate: (parameters) => statement.iterate(...(parameters as Parameters)),
  };
}

function preparedOnce(
  database: DatabaseSync,
  cache: Map<string, SqliteStatement>,
  sql: string,
): SqliteStatement {
  const text = sql === 'begin' ? 'begin immediate' : sql;
  const known = cache.get(text);
  if (known !== undefined) return known;
  const oldest = cache.keys().next();
  if (cache.size >= STATEMENT_CACHE_SIZE && oldest.done !== true) cache.delete(oldest.value);
  const statement = prepare(database, text);
  cache.set(text, statement);
  return statement;
}
