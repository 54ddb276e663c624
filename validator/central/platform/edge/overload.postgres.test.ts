/** A central API whose PostgreSQL database is overloaded. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { eventually } from '../../../../test/fakes/eventually.ts';
import { createPostgresDatabase, runSql } from '../../../../test/fakes/scenes/central-database.ts';
import type { TestAccount } from '../../../../test/fakes/scenes/central-fixture.ts';
import { createTestMarket, type TestMarket } from '../../../../test/fakes/scenes/market-fixture.ts';
import { openCentralDatabase } from '../database/database.ts';
import type { Database } from '../database/tables.ts';

/** Number of connections of a process, except the reserve. */
const CONNECTIONS = 20;

let url: string;
let db: Database;
let market: TestMarket;
let account: TestAccount;
let podId: string;

beforeEach(async () => {
  url = await createPostgresDatabase();
  db = await openCentralDatabase(url);
  market = await createTestMarket({ db });
  account = await market.renter();
  podId = (await market.rent(account, (await market.verifiedNode()).id)).body.id;
});
afterEach(() => market.close());

const readPod = () => market.call('GET', `/pods/${podId}`, { headers: account.key });
const deletePod = () => market.call('DELETE', `/pods/${podId}`, { headers: account.key });

it('rejects requests with database_busy while long queries use all connections, and still deletes pods', async () => {
  const release = Promise.withResolvers<void>();
  let connected = 0;
  const queries = Array.from({ length: CONNECTIONS }, () =>
    db.connection().execute(async (connection) => {
      connected += 1;
      await runSql(connection, 'select pg_sleep(1)');
      await release.promise;
    }),
  );
  await eventually('all connections are used', () => connected === CONNECTIONS);
  const reading = readPod();
  const deleted = await deletePod();
  const read = await reading;
  release.resolve();
  await Promise.all(queries);
  expect(deleted).toMatchObject({ status: 200, body: { status: 'DELETING' } });
  expect(read).toMatchObject({
    status: 503,
    headers: { 'retry-after': '5' },
    body: { error: { code: 'database_busy', message: 'The database has no free connection' } },
  });
  expect((await readPod()).status).toBe(200);
}, 30_000);

it('rejects a write with database_locked while another process holds a lock, and answers reads', async () => {
  const other = await openCentralDatabase(url);
  const holder = await other.startTransaction().execute();
  await runSql(holder, 'lock table account_secrets in exclusive mode');
  const writing = market.call('POST', '/secrets', {
    headers: account.key,
    body: { name: 'waits', value: 'x' },
  });
  expect((await readPod()).status).toBe(200);
  expect(await writing).toMatchObject({
    status: 503,
    headers: { 'retry-after': '5' },
    body: { error: { code: 'database_locked' } },
  });
  await holder.rollback().execute();
  await other.destroy();
}, 30_000);
