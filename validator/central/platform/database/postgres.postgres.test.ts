/** PostgreSQL connections: error messages, required settings, reconnects and notifications. */
import { sql } from 'kysely';
import { Client } from 'pg';
import { expect, inject, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { eventually } from '../../../../test/fakes/eventually.ts';
import { postgresUrl } from '../../../../test/fakes/external/postgres-server.ts';
import { startPostgresProxy } from '../../../../test/fakes/faults/postgres-proxy.ts';
import {
  createEmptyPostgresDatabase,
  createPostgresDatabase,
} from '../../../../test/fakes/scenes/central-database.ts';
import { openEvidenceStore } from '../../../store/evidence-store.ts';
import { openCentralDatabase } from './database.ts';
import { openNotifier } from './notifier.ts';
import type { Db } from './tables.ts';

const log = createLog({ name: 'test', level: 'silent' });

async function onServer(...statements: string[]): Promise<void> {
  const url = postgresUrl(inject('centralDatabase'), 'postgres');
  const server = new Client({ connectionString: url });
  await server.connect();
  for (const statement of statements) await server.query(statement);
  await server.end();
}

it.each([
  // The service manager restarts the process, because the server may be available when the process starts again.
  [
    'Error',
    'postgres://me:s3cret@127.0.0.1:1/market',
    /127\.0\.0\.1:1, database market.*ECONNREFUSED/,
  ],
  [
    'Error',
    'postgres://me:s3cret@nowhere.invalid/market',
    /nowhere\.invalid:5432.*ENOTFOUND|EAI_AGAIN/,
  ],
  ['ConfigError', 'postgres://me:s3cret@[half/market', /not the address of a PostgreSQL server/],
  ['ConfigError', 'mysql://me:s3cret@127.0.0.1/market', /mysql:\/\/ is not supported/],
])('throws %s for %s, without the password', async (name, url, message) => {
  const error = await openCentralDatabase(url).catch((refusal: unknown) => refusal);
  expect(error).toMatchObject({ name, message: expect.stringMatching(message) });
  expect(String(error)).not.toContain('s3cret');
});

it('rejects a database that does not exist, and one with unsupported settings', async () => {
  const folder = inject('centralDatabase');
  await expect(openCentralDatabase(postgresUrl(folder, 'absent'))).rejects.toMatchObject({
    name: 'ConfigError',
    message: expect.stringMatching(/database "absent" does not exist/),
  });
  await onServer(
    "create database latin encoding 'LATIN1' template template0",
    'create database strict',
    "alter database strict set default_transaction_isolation = 'serializable'",
  );
  await expect(openCentralDatabase(postgresUrl(folder, 'latin'))).rejects.toThrow(
    /server_encoding is LATIN1, it must be UTF8/,
  );
  await expect(openCentralDatabase(postgresUrl(folder, 'strict'))).rejects.toThrow(
    /default_transaction_isolation is serializable/,
  );
});

it('runs the migrations once when several processes start at the same time', async () => {
  await onServer('create database started_at_once');
  const url = postgresUrl(inject('centralDatabase'), 'started_at_once');
  const opened = await Promise.all(Array.from({ length: 4 }, () => openCentralDatabase(url)));
  for (const db of opened) {
    expect(await db.selectFrom('executors').select('id').execute()).toEqual([]);
    await db.destroy();
  }
});

it('when two programs start on the same empty database, only one of them can use it', async () => {
  const url = await createEmptyPostgresDatabase();
  const start = () => Promise.allSettled([openCentralDatabase(url), openEvidenceStore(url)]);
  for (const turn of ['first', 'again']) {
    const started = await start();
    const taken = started.filter((each) => each.status === 'fulfilled');
    const lost = started.find((each) => each.status === 'rejected');
    for (const { value } of taken) await value.destroy();
    expect([turn, taken.length, String(lost?.reason)]).toEqual([
      turn,
      1,
      expect.stringMatching(/^ConfigError: .* it holds the (database of a|evidence store of a)/),
    ]);
  }
});

it('queries succeed again after all connections were lost', async () => {
  const url = await createPostgresDatabase();
  const db = await openCentralDatabase(url);
  const end = `select pg_terminate_backend(pid) from pg_stat_activity
    where datname = '${new URL(url).pathname.slice(1)}'`;
  const cut = db.transaction().execute(async (tx) => {
    await tx.selectFrom('meta').selectAll().execute();
    await onServer(end);
    return tx.selectFrom('meta').selectAll().execute();
  });
  await expect(cut).rejects.toMatchObject({
    name: 'OverloadError',
    message: 'The connection to the database was lost',
  });
  await onServer(end);
  const read = () => db.selectFrom('meta').selectAll().execute();
  const rows = await eventually('an answer', () => read().catch(() => null));
  expect(rows).toEqual([{ name: 'schema', value: expect.any(String) }]);
  await db.destroy();
});

it('reports that the result is unknown if the connection is lost during the commit', async () => {
  const folder = inject('centralDatabase');
  const url = await createPostgresDatabase();
  const proxy = await startPostgresProxy(folder);
  const db = await openCentralDatabase(proxy.urlOf(url));
  proxy.watch(async (query, moment) => {
    if (moment === 'done' && query.includes('commit')) await proxy.close();
  });
  const added = db
    .transaction()
    .execute((tx) => tx.insertInto('meta').values({ name: 'lost', value: 'x' }).execute());
  await expect(added).rejects.toMatchObject({
    name: 'OverloadError',
    message: expect.stringMatching(/may have taken effect: .* Idempotency-Key/),
  });
  await db.destroy();
  const direct = await openCentralDatabase(url);
  const rows = direct.selectFrom('meta').select('value').where('name', '=', 'lost');
  expect(await rows.execute()).toEqual([{ value: 'x' }]);
  await direct.destroy();
});

it('answers on a standby with an overload error, and writes again without a restart', async () => {
  const url = await createPostgresDatabase();
  const name = new URL(url).pathname.slice(1);
  const readOnly = (state: string) =>
    onServer(`alter database ${name} set default_transaction_read_only = ${state}`);
  const db = await openCentralDatabase(url);
  await readOnly('on');
  await onServer(
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`,
  );
  await eventually('a connection to the standby', () =>
    db
      .selectFrom('meta')
      .select('name')
      .execute()
      .catch(() => null),
  );
  const write = () =>
    db
      .transaction()
      .execute((tx) => tx.insertInto('meta').values({ name: 'after', value: 'x' }).execute());
  const readOnlyError = { name: 'OverloadError', message: 'The database is read-only' };
  await expect(write()).rejects.toMatchObject(readOnlyError);
  await readOnly('off');
  await write();
  await db.destroy();
});

it('refuses to start on a read-only server with the remedy, so that a restart can succeed', async () => {
  const url = await createPostgresDatabase();
  const name = new URL(url).pathname.slice(1);
  const readOnly = (state: string) =>
    onServer(`alter database ${name} set default_transaction_read_only = ${state}`);
  await readOnly('on');
  const refused = {
    name: 'Error',
    message: expect.stringMatching(
      /^CENTRAL_DATABASE: .* is read-only .*; name the primary server/,
    ),
  };
  await expect(openCentralDatabase(url)).rejects.toMatchObject(refused);
  await readOnly('off');
  await (await openCentralDatabase(url)).destroy();
});

it('rejects a query with an overload error if no connection becomes free in time', async () => {
  const db = await openCentralDatabase(await createPostgresDatabase());
  const release = Promise.withResolvers<void>();
  const hold = () => db.connection().execute(() => release.promise);
  const holders = Array.from({ length: 20 }, hold);
  const waiting = db.selectFrom('accounts').select('id').execute();
  await expect(waiting).rejects.toMatchObject({
    name: 'OverloadError',
    message: 'The database has no free connection',
  });
  release.resolve();
  await Promise.all(holders);
  expect(await db.selectFrom('accounts').select('id').execute()).toEqual([]);
  await db.destroy();
});

it.each([
  ['lock_timeout', 'The database did not release a lock in time'],
  ['statement_timeout', 'The database did not answer in time'],
])('rejects a query with an overload error at the %s', async (limit, message) => {
  const db = await openCentralDatabase(await createPostgresDatabase());
  const holding = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const lock = (tx: Db) => sql`lock table accounts`.execute(tx);
  const holder = db.transaction().execute(async (tx) => {
    await lock(tx);
    holding.resolve();
    await release.promise;
  });
  await holding.promise;
  const waiting = db.transaction().execute(async (tx) => {
    await sql`select set_config(${limit}, '100', true)`.execute(tx);
    await lock(tx);
  });
  await expect(waiting).rejects.toMatchObject({ name: 'OverloadError', message });
  release.resolve();
  await holder;
  await db.transaction().execute(lock);
  await db.destroy();
});

it('other processes receive a notification and the sender does not; after a reconnect, all listeners run', async () => {
  const target = await createPostgresDatabase();
  const name = new URL(target).pathname.slice(1);
  const received: Record<'one' | 'other', string[]> = { one: [], other: [] };
  const one = openNotifier({ target, clock: systemClock, log });
  const other = openNotifier({ target, clock: systemClock, log });
  for (const topic of ['sync', 'events a'] as const) {
    one.onNotify(topic, () => received.one.push(topic));
    other.onNotify(topic, () => received.other.push(topic));
  }
  // After a new connection, every listener runs once.
  await eventually(
    'both connected',
    () => received.one.length === 2 && received.other.length === 2,
  );
  one.notify('sync');
  await eventually('the notification', () => received.other.length === 3);
  await onServer(
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`,
  );
  await eventually(
    'both connected again',
    () => received.one.length === 4 && received.other.length === 5,
  );
  other.notify('events a');
  await eventually('the notification', () => received.one.length === 5);
  const both = ['sync', 'events a'];
  expect(received).toEqual({
    one: [...both, ...both, 'events a'],
    // In the process that sends the notification, listeners run for `events` and not for `sync`.
    other: [...both, 'sync', ...both, 'events a'],
  });
  await Promise.all([one.close(), other.close()]);
});

it('sends no notification to other processes on SQLite', () => {
  expect(openNotifier({ target: 'central.db', clock: systemClock, log }).isShared).toBe(false);
});
