/** Kysely's SQLite dialect over node:sqlite, for the central API and the validator's ledger (marketplace reference 5.3). */
import { SqliteDialect, type SqliteStatement } from 'kysely';
import { type DatabaseSync, openSqlite } from '#shared/runtime/sqlite.ts';

/** Distinct statements of the product are some hundreds; beyond this the oldest is prepared anew. */
const STATEMENT_CACHE_SIZE = 1_000;

/** 16 MiB. A checkpoint copies each page once, however often it was written since the last: a rental writes twenty. */
const CHECKPOINT_PAGES = 4_000;

type Parameters = readonly (string | number | bigint | null | Uint8Array)[];

/** Opens `path` (or `:memory:`). */
export function nodeSqliteDialect(path: string): SqliteDialect {
  return dialectOver(openSqlite(path));
}

/** Over an open database, which it closes. Transactions begin IMMEDIATE, so none fails half-way for want of the lock. */
export function dialectOver(database: DatabaseSync): SqliteDialect {
  database.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
  const cache = new Map<string, SqliteStatement>();
  return new SqliteDialect({
    database: {
      close: () => database.close(),
      prepare: (sql) => preparedOnce(database, cache, sql),
    },
  });
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
