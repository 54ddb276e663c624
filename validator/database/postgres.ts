/** Connects to a PostgreSQL server. Loaded only when the configuration names one. */
import { type Dialect, PostgresDialect } from 'kysely';
import { Client, type ClientConfig, Pool, types } from 'pg';
import { ConfigError } from '#shared/runtime/config.ts';
import { hasCode, messageOf } from '#shared/runtime/errors.ts';
import type { DatabaseTarget } from './open-database.ts';
import { DEFAULT_SERVER_LIMITS, type ServerLimits } from './server-limits.ts';
import { isTransient, withOverload } from './server-overload.ts';

/** Connections beside those of the pool for urgent requests, while all others are in use. */
const RESERVED_CONNECTIONS = 2;
const CONNECT_TIMEOUT_MS = 5_000;
const IDLE_CONNECTION_MS = 60_000;
/** Time after the limit of a statement at which the client gives up a query that the server has not ended. */
const ANSWER_GRACE_MS = 5_000;
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

/**
 * Settings of every connection. The limits of the server are not among them: a pooler in transaction mode refuses or
 * ignores them.
 */
function clientConfig(
  url: string,
  applicationName: string,
  { statementMs }: ServerLimits = DEFAULT_SERVER_LIMITS,
): ClientConfig {
  return {
    connectionString: url,
    application_name: applicationName,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    query_timeout: statementMs + ANSWER_GRACE_MS,
    types: { getTypeParser: parserOf },
  };
}

function serverSettings({ statementMs, lockMs }: ServerLimits) {
  return {
    statement_timeout: statementMs,
    lock_timeout: lockMs,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_TIMEOUT_MS,
  };
}

/**
 * Checks the server and opens a pool. Rejects if the server cannot be used: with ConfigError, or with another error if
 * a retry may succeed. The message names the server and never the password.
 * On a direct connection, the limits are settings of the session. Behind a pooler, a session is not ours, so each
 * transaction begins with the limits; single statements then have those of the database's role.
 */
export async function postgresDialect(target: DatabaseTarget): Promise<Dialect> {
  const { pooled } = await checkServer(target);
  const limits = target.limits ?? DEFAULT_SERVER_LIMITS;
  const settings = serverSettings(limits);
  const config = {
    ...clientConfig(target.address, target.applicationName, limits),
    ...(pooled ? {} : settings),
  };
  const local = Object.entries(settings).map(([name, value]) => `set local ${name} = ${value}`);
  const pool = withOverload({
    pool: openPool(config, limits.poolSize),
    poolSize: limits.poolSize,
    reserve: openPool(config, RESERVED_CONNECTIONS),
    settings: pooled ? local.join(';') : null,
  });
  return new PostgresDialect({ pool });
}

function openPool(config: ClientConfig, max: number): Pool {
  const pool = new Pool({ ...config, max, idleTimeoutMillis: IDLE_CONNECTION_MS });
  // Without listeners Node would throw these errors. The current or next query reports the lost connection.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => client.on('error', () => undefined));
  return pool;
}

/** Opens a connection outside the pool; the event `end` reports its loss. `pooled`: see `isPooled`. */
export async function connectClient(
  url: string,
  applicationName: string,
): Promise<{ client: Client; pooled: boolean }> {
  const client = new Client(clientConfig(url, applicationName));
  client.on('error', () => undefined);
  await client.connect();
  try {
    return { client, pooled: await isPooled(client) };
  } catch (error) {
    await client.end().catch(() => undefined);
    throw error;
  }
}

/**
 * Returns true if a pooler such as PgBouncer is between this process and the server: it announces a process id of its
 * own to the client. The server then need not keep the state of a session, such as LISTEN, between two transactions.
 */
async function isPooled(client: Client): Promise<boolean> {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  // The types lack this member.
  const { processID } = client as Client & { processID: number | null };
  return rows[0]?.pid !== processID;
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

async function checkServer(target: DatabaseTarget): Promise<{ pooled: boolean }> {
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
    return { pooled: await isPooled(client) };
  } catch (cause) {
    const place = `${target.variable}: PostgreSQL at ${placeOf(client)}`;
    if (messageOf(cause).includes(NO_PASSWORD))
      throw new ConfigError(`${place} ${PASSWORD_REMEDY}`);
    const what = `${place} cannot be used: ${reasonOf(cause)}`;
    const remedy =
      'start the server, or correct the address (postgres://user:password@host:port/database)';
    if (isTlsRefusal(cause)) throw new ConfigError(`${what}; ${TLS_REMEDY}`, { cause });
    throw isTransient(cause)
      ? new Error(`${what}; ${remedy}`, { cause })
      : new ConfigError(`${what}; ${remedy}`, { cause });
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** Codes of TLS errors: the certificate is not valid for the address, or no trusted authority has signed it. */
const CERTIFICATE_ERROR = /^(?:CERT_|DEPTH_ZERO_|ERR_TLS_CERT_|SELF_SIGNED_|UNABLE_TO_)/;
/** Message of pg if the address requires TLS. */
const NO_TLS = 'The server does not support SSL connections';
/** Part of pg's message if the server requires a password and neither the address nor the environment has one. */
const NO_PASSWORD = 'client password must be a string';
const PASSWORD_REMEDY =
  'requires a password: set PGPASSWORD, add the server to ~/.pgpass, or write the password into the address';
const TLS_REMEDY =
  'sslrootcert of the address must name the certificate of the authority that signed the server’s certificate, ' +
  'and the certificate must be valid for the host of the address';

/** Returns true if the server's certificate is refused, or the server has none. A retry does not help. */
function isTlsRefusal(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = error as { code?: unknown };
  return error.message === NO_TLS || (typeof code === 'string' && CERTIFICATE_ERROR.test(code));
}

function clientFor({ address, variable, applicationName }: DatabaseTarget): Client {
  try {
    return new Client(clientConfig(address, `${applicationName}-start`));
  } catch (error) {
    if (hasCode(error, 'ENOENT') || hasCode(error, 'EACCES')) {
      throw new ConfigError(
        `${variable}: a file of sslrootcert, sslcert or sslkey: ${messageOf(error)}`,
      );
    }
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
