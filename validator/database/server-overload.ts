/** Errors of PostgreSQL connections that a request answers with 503: no free connection, time limits, lost connections. */
import type { PostgresCursor, PostgresPool, PostgresPoolClient, PostgresQueryResult } from 'kysely';
import { DatabaseError, type Pool } from 'pg';
import { ConfigError } from '#shared/runtime/config.ts';
import { OverloadError, type UnavailableCode } from '#shared/runtime/errors.ts';
import { isUrgent } from './urgent.ts';

export type OverloadOptions = {
  pool: PostgresPool & Pick<Pool, 'idleCount' | 'totalCount' | 'waitingCount'>;
  poolSize: number;
  /** Pool for urgent requests while all connections of `pool` are in use. */
  reserve: PostgresPool;
  /** Statements at the beginning of each transaction. */
  settings: string | null;
};

/**
 * Returns a pool whose `connect` rejects with OverloadError if no connection becomes free in time, or the server
 * accepts none, and whose queries reject with OverloadError at a time limit, on a full disk, on a read-only server, and
 * if the connection is lost.
 */
export function withOverload({ pool, poolSize, reserve, settings }: OverloadOptions): PostgresPool {
  const isUsedUp = () =>
    pool.waitingCount > 0 || (pool.idleCount === 0 && pool.totalCount >= poolSize);
  return {
    ...(pool.Client === undefined ? {} : { Client: pool.Client }),
    options: pool.options,
    async connect() {
      try {
        const used = isUrgent() && isUsedUp() ? reserve : pool;
        return withQueryOverload(await used.connect(), settings);
      } catch (cause) {
        if (!isTransient(cause)) throw cause;
        throw new OverloadError('The database has no free connection', {
          code: 'database_busy',
          cause,
        });
      }
    },
    async end() {
      await Promise.all([pool.end(), reserve.end()]);
    },
  };
}

/**
 * SQLSTATEs of the time limits of locks and statements, and of a full disk. The server has undone the query, and the
 * connection can be used.
 */
const OVERLOADS: Record<string, { message: string; code: UnavailableCode }> = {
  '55P03': { message: 'The database did not release a lock in time', code: 'database_locked' },
  '57014': { message: 'The database did not answer in time', code: 'database_busy' },
  '53100': { message: 'The disk of the database is full', code: 'storage_full' },
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

/** Statements that begin a transaction. */
const BEGINNING = /^(?:begin|start transaction)\b/;

function withQueryOverload(
  client: PostgresPoolClient,
  settings: string | null,
): PostgresPoolClient {
  let inTransaction = false;
  /** Error of the lost connection. The rollback reports it too, because its error replaces the error of the query. */
  let lost: OverloadError | null = null;

  function overloadOf(cause: unknown, sql: string): unknown {
    const code = cause instanceof DatabaseError ? (cause.code ?? '') : null;
    const overload = OVERLOADS[code ?? ''];
    if (overload !== undefined) {
      return new OverloadError(overload.message, { code: overload.code, cause });
    }
    if (code === READ_ONLY) lost = new OverloadError('The database is read-only', { cause });
    else if (code === null ? isLostConnection(cause) : CLOSING.test(code)) {
      const mayBeSaved = sql === 'commit' || !(inTransaction || UNSAVED.test(sql));
      lost = new OverloadError(mayBeSaved ? MAY_BE_SAVED : NOT_SAVED, { cause });
    }
    return lost ?? cause;
  }

  async function send<R>(sql: string, parameters: readonly unknown[]) {
    if (settings === null || !BEGINNING.test(sql)) return client.query<R>(sql, parameters);
    // One message, and so one round trip. Its results, one for each statement, are not used.
    await client.query(`${sql};${settings}`, []);
    return { command: 'SELECT', rowCount: 0, rows: [] } satisfies PostgresQueryResult<R>;
  }

  async function run<R>(sql: string, parameters: readonly unknown[]) {
    if (lost !== null) throw lost;
    try {
      const result = await send<R>(sql, parameters);
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

/** Returns true if the server does not answer, or is starting, stopping or full (SQLSTATE classes 08, 53 and 57). */
export function isTransient(error: unknown): boolean {
  if (error instanceof DatabaseError) return /^(08|53|57)/.test(error.code ?? '');
  return !(error instanceof ConfigError);
}
