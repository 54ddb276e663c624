/** Connections to PostgreSQL with TLS, with configured limits, and through a pooler in transaction mode. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Kysely, sql } from 'kysely';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { makeCertificate } from '#shared/tls/certificate.ts';
import { type PgBouncer, startPgBouncer } from '../../test/fakes/external/pgbouncer.ts';
import {
  type PostgresServer,
  postgresUrl,
  SUPERUSER,
  startPostgresServer,
} from '../../test/fakes/external/postgres-server.ts';
import { freePorts } from '../../test/fakes/free-ports.ts';
import { createPostgresDatabase } from '../../test/fakes/scenes/central-database.ts';
import { openDatabase } from './open-database.ts';
import type { ServerLimits } from './server-limits.ts';

const HOUR_MS = 3_600_000;
const LIMITS: ServerLimits = { poolSize: 4, statementMs: 2_000, lockMs: 300 };
const POOLED_CONNECTIONS = 3;

let folder: string;
let pooler: PgBouncer;
let secure: PostgresServer;
let port: number;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-tls-'));
  pooler = await startPgBouncer(inject('centralDatabase'), { connections: POOLED_CONNECTIONS });
  ({ first: port } = await freePorts(1));
  const server = certificateFor('localhost');
  writeFileSync(join(folder, 'ca.pem'), server.certificate);
  writeFileSync(join(folder, 'other.pem'), certificateFor('localhost').certificate);
  secure = await startPostgresServer({ keepsCommits: false, tls: { port, ...server } });
});

afterAll(async () => {
  await secure?.remove();
  await pooler?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A self-signed certificate, which is its own authority. */
function certificateFor(name: string): { certificate: string; key: string } {
  const { privateKey } = generateKeyPairSync('ed25519');
  const nowMs = systemClock.now();
  const certificate = makeCertificate({
    privateKey,
    name,
    notBeforeMs: nowMs - HOUR_MS,
    notAfterMs: nowMs + HOUR_MS,
    serial: systemRandom.bytes(16),
  });
  return { certificate, key: String(privateKey.export({ type: 'pkcs8', format: 'pem' })) };
}

function open(address: string, limits?: ServerLimits): Promise<Kysely<unknown>> {
  return openDatabase<unknown>({
    address,
    variable: 'CENTRAL_DATABASE',
    kind: 'central',
    applicationName: 'podwright-test',
    limits,
  });
}

async function withDatabase(
  address: string,
  limits: ServerLimits,
  work: (db: Kysely<unknown>) => Promise<void>,
): Promise<void> {
  const db = await open(address, limits);
  try {
    await work(db);
  } finally {
    await db.destroy();
  }
}

const secureUrl = (host: string, authority: string) =>
  `postgres://${SUPERUSER}:hush@${host}:${port}/postgres?sslmode=verify-full&sslrootcert=${join(folder, authority)}`;

it('uses TLS with the authority of the address, and the server sees the connection as encrypted', async () => {
  const db = await open(secureUrl('localhost', 'ca.pem'));
  const { rows } = await sql<{ ssl: boolean; version: string }>`
    select ssl, version from pg_stat_ssl where pid = pg_backend_pid()`.execute(db);
  await db.destroy();
  expect(rows).toEqual([{ ssl: true, version: 'TLSv1.3' }]);
});

it.each([
  [
    'an authority that has not signed the certificate',
    () => secureUrl('localhost', 'other.pem'),
    /cannot be used: .*certificate.*; sslrootcert of the address must name/,
  ],
  [
    'a host for which the certificate is not valid',
    () => secureUrl('127.0.0.1', 'ca.pem'),
    /cannot be used: Hostname\/IP does not match.*; sslrootcert of the address must name/,
  ],
  [
    'an absent authority',
    () => secureUrl('localhost', 'absent.pem'),
    /a file of sslrootcert, .*absent\.pem/,
  ],
  [
    'a server without TLS',
    () => `${postgresUrl(inject('centralDatabase'), 'postgres')}&sslmode=verify-full`,
    /does not support SSL connections; sslrootcert/,
  ],
])('refuses %s, without the password', async (_, address, message) => {
  const error = await open(address()).catch((refusal: unknown) => refusal);
  expect(error).toMatchObject({ name: 'ConfigError', message: expect.stringMatching(message) });
  expect(String(error)).not.toContain('hush');
});

it('names the ways to give a password that the server requires', async () => {
  const db = await open(secureUrl('localhost', 'ca.pem'));
  try {
    await sql`create role guest login password 'hush'`.execute(db);
    const hba = await shown(db, 'hba_file');
    writeFileSync(hba, `hostssl all guest all scram-sha-256\n${readFileSync(hba, 'utf8')}`);
    await sql`select pg_reload_conf()`.execute(db);
    const address = secureUrl('localhost', 'ca.pem').replace(`${SUPERUSER}:hush`, 'guest');
    await expect(open(address)).rejects.toMatchObject({
      name: 'ConfigError',
      message: expect.stringContaining('requires a password: set PGPASSWORD'),
    });
  } finally {
    await db.destroy();
  }
});

async function shown(db: Kysely<unknown>, setting: string): Promise<string> {
  const { rows } = await sql<{ value: string }>`
    select current_setting(${setting}) as value`.execute(db);
  return rows[0]?.value ?? '';
}

/** Expects that transactions have the limits, and that a wait for a lock ends with an overload error. */
async function expectLimits(db: Kysely<unknown>): Promise<void> {
  await db.transaction().execute(async (tx) => {
    expect(await shown(tx, 'statement_timeout')).toBe('2s');
    expect(await shown(tx, 'lock_timeout')).toBe('300ms');
    expect(await shown(tx, 'idle_in_transaction_session_timeout')).toBe('30s');
  });
  const lock = (handle: Kysely<unknown>) => sql`lock table accounts`.execute(handle);
  await db.transaction().execute(async (holder) => {
    await lock(holder);
    await expect(db.transaction().execute(lock)).rejects.toMatchObject({
      name: 'OverloadError',
      message: 'The database did not release a lock in time',
    });
  });
}

it('has the configured number of connections and time limits', async () => {
  await withDatabase(await createPostgresDatabase(), LIMITS, async (db) => {
    await expectLimits(db);
    expect(await shown(db, 'statement_timeout')).toBe('2s');
    const release = Promise.withResolvers<void>();
    const holders = Array.from({ length: LIMITS.poolSize }, () =>
      db.connection().execute(() => release.promise),
    );
    await expect(shown(db, 'lock_timeout')).rejects.toThrow(/no free connection/);
    release.resolve();
    await Promise.all(holders);
  });
});

it('has the time limits in each transaction through a pooler in transaction mode', async () => {
  const address = pooler.urlOf(await createPostgresDatabase());
  await withDatabase(address, { ...LIMITS, poolSize: 20 }, async (db) => {
    await expectLimits(db);
    // Another client's transaction may use the same connection of the pooler next, without the limits.
    expect(await shown(db, 'statement_timeout')).toBe('0');
  });
});

it('keeps concurrent transactions apart that share the connections of a pooler', async () => {
  const address = pooler.urlOf(await createPostgresDatabase());
  await withDatabase(address, { ...LIMITS, poolSize: 20 }, async (db) => {
    await sql`create table counted (n bigint not null)`.execute(db);
    await sql`insert into counted values (0)`.execute(db);
    const add = () =>
      db.transaction().execute(async (tx) => {
        const { rows } = await sql<{ n: number }>`select n from counted for update`.execute(tx);
        await sql`update counted set n = ${(rows[0]?.n ?? 0) + 1}`.execute(tx);
      });
    await Promise.all(Array.from({ length: 60 }, add));
    const { rows } = await sql`select n from counted`.execute(db);
    expect(rows).toEqual([{ n: 60 }]);
    const { rows: used } = await sql<{ count: number }>`select count(*) from pg_stat_activity
      where datname = current_database()`.execute(db);
    expect(used[0]?.count).toBeLessThanOrEqual(POOLED_CONNECTIONS);
  });
});
