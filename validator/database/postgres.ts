/** Connects to a PostgreSQL server. Loaded only when the configuration names one. */
import {
  type Dialect,
  type PostgresCursor,
  PostgresDialect,
  type PostgresPool,
  type PostgresPoolClient,
  type PostgresQueryResult,
} from 'kysely';
import { Client, type ClientConfig, DatabaseError, Pool, types } from 'pg';
import { ConfigError } from '#shared/runtime/config.ts';
import { messageOf, OverloadError } from '#shared/runtime/errors.ts';
import type { DatabaseTarget } from './open-database.ts';

/** Maximum number of connections per process; a server accepts 100 in total by default. */
const MAX_CONNECTIONS = 20;
const CONNECT_TIMEOUT_MS = 5_000;
const IDLE_CONNECTION_MS = 60_000;
/** Time limit of a query. Our queries are short, and a slow one must not hold its locks. */
const STATEMENT_TIMEOUT_MS = 30_000;
const LOCK_TIMEOUT_MS = 10_000;
/** Time after which the client gives up a query that the server has not ended at STATEMENT_TIMEOUT_MS. */
const ANSWER_TIMEOUT_MS = STATEMENT_TIMEOUT_MS + 5_000;
/** Time after which the server ends a transaction of a process that hangs, which releases its locks. */
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 30_000;

/**
 * Settings that the database must have: our queries choose their row locks for this isolation level, and renters' text
 * is Unicode.
 */
const REQUIRED_SETTINGS = [
  ['server_encoding', 'UTF8'],
  ['default_transaction_isolation', 'read committed'],
] as const;

/** 64-bit integers and their sums, which are parsed as JavaScript numbers. */
const WHOLE_NUMBER_TYPES: readonly number[] = [types.builtins.INT8, types.builtins.NUMERIC];

/** Settings of every connection. */
function clientConfig(url: string, applicationName: string): ClientConfig {
  return {
    connectionString: url,
    application_name: applicationName,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    statement_timeout: STATEMENT_TIMEOUT_MS,
    query_timeout: ANSWER_TIMEOUT_MS,
    lock_timeout: LOCK_TIMEOUT_MS,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_TIMEOUT_MS,
    types: { getTypeParser: parserOf },
  };
}

/**
 * Checks the server and opens a pool. Rejects if the server cannot be used: with ConfigError, or with another error if
 * a retry may succeed. The message names the server and never the password.
 */
export async function postgresDialect(target: DatabaseTarget): Promise<Dialect> {
  await checkServer(target);
  const pool = new Pool({
    ...clientConfig(target.address, target.applicationName),
    max: MAX_CONNECTIONS,
    idleTimeoutMillis: IDLE_CONNECTION_MS,
  });
  // Without listeners Node would throw these errors. The current or next query reports the lost connection.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => client.on('error', () => undefined));
  return new PostgresDialect({ pool: withOverload(pool) });
}

/**
 * Returns a pool whose `connect` rejects with OverloadError if no connection becomes free in time, or the server
 * accepts none, and whose queries reject with OverloadError at a time limit, on a read-only server, and if the
 * connection is lost.
 */
function withOverload(pool: PostgresPool): PostgresPool {
  return {
    ...(pool.Client === undefined ? {} : { Client: pool.Client }),
    options: pool.options,
    async connect() {
      try {
        return withQueryOverload(await pool.connect());
      } catch (cause) {
        if (!isTransient(cause)) throw cause;
        throw new OverloadError('The database has no free connection', { cause });
      }
    },
    end: () => pool.end(),
  };
}

/** Messages for the SQLSTATEs of LOCK_TIMEOUT_MS and STATEMENT_TIMEOUT_MS. The server has undone the query. */
const TIMEOUTS: Record<string, string> = {
  '55P03': 'The database did not release a lock in time',
  '57014': 'The database did not answer in time',
};

/**
 * SQLSTATE of a write on a read-only server, such as a primary that became a standby. A new connection may reach
 * the new primary.
 */
const READ_ONLY = '25006';
/** SQLSTATEs after which the server closes the connection. */
const CLOSING = /^(?:08|57P|25P03)/;
/** Errors of the client for a lost connection, which have no code. */
const LOST = /^(?:Connection terminated|Client (?:has encountered|was closed)|Query read timeout)/;
/** Queries that a lost connection cannot have saved, if no transaction has begun. */
const UNSAVED = /^(?:begin|start|select|set|show)\b/i;

function withQueryOverload(client: PostgresPoolClient): PostgresPoolClient {
  let inTransaction = false;
  /** Error of the lost connection. The rollback reports it too, because its error replaces the error of the query. */
  let lost: OverloadError | null = null;

  function overloadOf(cause: unknown, sql: string): unknown {
    const code = cause instanceof DatabaseError ? (cause.code ?? '') : null;
    const timeout = TIMEOUTS[code ?? ''];
    if (timeout !== undefined) return new OverloadError(timeout, { cause });
    if (code === READ_ONLY) lost = new OverloadError('The database is read-only', { cause });
    else if (code === null ? isLostConnection(cause) : CLOSING.test(code)) {
      const mayBeSaved = sql === 'commit' || !(inTransaction || UNSAVED.test(sql));
      lost = new OverloadError(mayBeSaved ? MAY_BE_SAVED : NOT_SAVED, { cause });
    }
    return lost ?? cause;
  }

  async function run<R>(sql: string, parameters: readonly unknown[]) {
    if (lost !== null) throw lost;
    try {
      const result = await client.query<R>(sql, parameters);
      if (sql === 'begin') inTransaction = true;
      if (sql === 'commit' || sql === 'rollback') inTransaction = false;
      return result;
    } catch (cause) {
      throw overloadOf(cause, sql);
    }
  }

  function query<R>(sql: string, parameters: readonly unknown[]): Promise<PostgresQueryResult<R>>;
  function query<R>(cursor: PostgresCursor<R>): PostgresCursor<R>;
  function query<R>(what: string | PostgresCursor<R>, parameters: readonly unknown[] = []) {
    return typeof what === 'string' ? run<R>(what, parameters) : client.query(what);
  }
  return { query, release: (destroy) => client.release(destroy === true || lost !== null) };
}

const NOT_SAVED = 'The connection to the database was lost';
const MAY_BE_SAVED =
  'The connection to the database was lost while it saved the change, so the change may have taken effect: repeat the request with its Idempotency-Key, or read the state first';

/** Returns true for an error of the client that the server did not send: the connection is lost or does not answer. */
function isLostConnection(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return LOST.test(error.message) || ('syscall' in error && 'code' in error);
}

/** Opens a connection outside the pool; the event `end` reports its loss. */
export async function connectClient(url: string, applicationName: string): Promise<Client> {
  const client = new Client(clientConfig(url, applicationName));
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

/** pg's parsers, except that whole numbers beyond the safe range are rejected instead of rounded. */
function parserOf(type: number, format?: 'text' | 'binary'): (text: string) => unknown {
  return WHOLE_NUMBER_TYPES.includes(type) ? safeInteger : types.getTypeParser(type, format);
}

function safeInteger(text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value)) return value;
  throw new RangeError(`the database holds ${text}, which is not a safe integer`);
}

async function checkServer(target: DatabaseTarget): Promise<void> {
  const client = clientFor(target);
  client.on('error', () => undefined);
  try {
    await client.connect();
    for (const [setting, value] of REQUIRED_SETTINGS) {
      const { rows } = await client.query(`show ${setting}`);
      const present = rows[0]?.[setting];
      if (present !== value) {
        throw new ConfigError(`its ${setting} is ${present}, it must be ${value}`);
      }
    }
  } catch (cause) {
    const what = `${target.variable}: PostgreSQL at ${placeOf(client)} cannot be used: ${reasonOf(cause)}`;
    const remedy =
      'start the server, or correct the address (postgres://user:password@host:port/database)';
    throw isTransient(cause)
      ? new Error(`${what}; ${remedy}`, { cause })
      : new ConfigError(`${what}; ${remedy}`, { cause });
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** Returns true if the server does not answer, or is starting, stopping or full (SQLSTATE classes 08, 53 and 57). */
function isTransient(error: unknown): boolean {
  if (error instanceof DatabaseError) return /^(08|53|57)/.test(error.code ?? '');
  return !(error instanceof ConfigError);
}

function clientFor({ address, variable, applicationName }: DatabaseTarget): Client {
  try {
    return new Client(clientConfig(address, `${applicationName}-start`));
  } catch {
    // The original message would contain the address, password included.
    throw new ConfigError(
      `${variable} is not the address of a PostgreSQL server: write postgres://user:password@host:port/database`,
    );
  }
}

function placeOf({ host, port, database }: Client): string {
  const place = host.startsWith('/') ? host : `${host}:${port}`;
  return `${place}, database ${database ?? '(none)'},`;
}

/**
 * Returns the messages of an AggregateError, which itself has none. Node throws it if a name has several addresses and
 * all refuse the connection.
 */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(messageOf).join('; ');
  return messageOf(error);
}
