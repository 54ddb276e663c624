/** The way to a PostgreSQL server: loaded only when the configuration names one. */
import { type Dialect, PostgresDialect } from 'kysely';
import { Client, type ClientConfig, DatabaseError, Pool, types } from 'pg';
import { ConfigError } from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { DatabaseTarget } from './target.ts';

/** Per process; a server's own default is 100 in all. */
const MAX_CONNECTIONS = 20;
const CONNECT_TIMEOUT_MS = 5_000;
const IDLE_CONNECTION_MS = 60_000;
/** No query of ours takes long; one that does must not hold its locks for ever. */
const STATEMENT_TIMEOUT_MS = 30_000;
const LOCK_TIMEOUT_MS = 10_000;
/** A process that hangs inside a transaction loses it, and with it the locks. */
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 30_000;

/** Locks are chosen for this isolation (row-lock.ts); text of renters is Unicode. */
const REQUIRED_SETTINGS = [
  ['server_encoding', 'UTF8'],
  ['default_transaction_isolation', 'read committed'],
] as const;

/** 64 bit integers, and what `sum` makes of them: as JavaScript numbers. */
const WHOLE_NUMBER_TYPES: readonly number[] = [types.builtins.INT8, types.builtins.NUMERIC];

/** Settings of every connection. `applicationName` shows in pg_stat_activity. */
function clientConfig(url: string, applicationName: string): ClientConfig {
  return {
    connectionString: url,
    application_name: applicationName,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    statement_timeout: STATEMENT_TIMEOUT_MS,
    lock_timeout: LOCK_TIMEOUT_MS,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_TIMEOUT_MS,
    types: { getTypeParser: parserOf },
  };
}

/** Rejects, naming the server and never the password, when it cannot be used: with ConfigError unless waiting may help. */
export async function postgresDialect(target: DatabaseTarget): Promise<Dialect> {
  await checkServer(target);
  const pool = new Pool({
    ...clientConfig(target.address, target.applicationName),
    max: MAX_CONNECTIONS,
    idleTimeoutMillis: IDLE_CONNECTION_MS,
  });
  // Both are thrown when nobody listens. The query under way, or the next one, reports the loss.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => client.on('error', () => undefined));
  return new PostgresDialect({ pool });
}

/** A connection of its own, outside the pool; its loss arrives as the event `end`. */
export async function connectClient(url: string, applicationName: string): Promise<Client> {
  const client = new Client(clientConfig(url, applicationName));
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

/** pg's own parsers but for whole numbers: one beyond the safe range is refused, not rounded. */
function parserOf(type: number, format?: 'text' | 'binary'): (text: string) => unknown {
  return WHOLE_NUMBER_TYPES.includes(type) ? safeInteger : types.getTypeParser(type, format);
}

function safeInteger(text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value)) return value;
  throw new RangeError(`the database holds ${text} where a safe whole number belongs`);
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
    throw isPassing(cause)
      ? new Error(`${what}; ${remedy}`, { cause })
      : new ConfigError(`${what}; ${remedy}`, { cause });
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** Nobody answers; or a server does that is starting, ending or full (SQLSTATE classes 08, 53 and 57). */
function isPassing(error: unknown): boolean {
  if (error instanceof DatabaseError) return /^(08|53|57)/.test(error.code ?? '');
  return !(error instanceof ConfigError);
}

function clientFor({ address, variable, applicationName }: DatabaseTarget): Client {
  try {
    return new Client(clientConfig(address, `${applicationName}-start`));
  } catch {
    // Its message would show the address, password included.
    throw new ConfigError(
      `${variable} is no address of a PostgreSQL server: write postgres://user:password@host:port/database`,
    );
  }
}

function placeOf({ host, port, database }: Client): string {
  const place = host.startsWith('/') ? host : `${host}:${port}`;
  return `${place}, database ${database ?? '(none)'},`;
}

/** A refused connection to several addresses of one name has no message of its own. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(messageOf).join('; ');
  return messageOf(error);
}
