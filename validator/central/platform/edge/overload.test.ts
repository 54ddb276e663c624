/** A central API whose database is locked by another process, or whose database file may not grow. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openSqlite } from '#shared/runtime/sqlite.ts';
import { runSql } from '../../../../test/fakes/scenes/central-database.ts';
import type { TestAccount } from '../../../../test/fakes/scenes/central-fixture.ts';
import { createTestMarket, type TestMarket } from '../../../../test/fakes/scenes/market-fixture.ts';
import { openCentralDatabase } from '../database/database.ts';
import type { Database } from '../database/tables.ts';

/** Far below the time for which a write waits for a lock. */
const AT_ONCE_MS = 1_000;

let folder: string;
let path: string;
let db: Database;
let market: TestMarket;
let account: TestAccount;
let podId: string;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-'));
  path = join(folder, 'central.db');
  db = await openCentralDatabase(path);
  market = await createTestMarket({ db });
  account = await market.renter();
  podId = (await market.rent(account, (await market.verifiedNode()).id)).body.id;
});
afterEach(async () => {
  await market.close();
  rmSync(folder, { recursive: true });
});

const addSecret = (name: string, value = 'x') =>
  market.call('POST', '/secrets', { headers: account.key, body: { name, value } });
const readPod = () => market.call('GET', `/pods/${podId}`, { headers: account.key });

async function timed<T>(work: () => Promise<T>): Promise<{ answer: T; ms: number }> {
  const beganMs = performance.now();
  const answer = await work();
  return { answer, ms: performance.now() - beganMs };
}

it('rejects writes with database_locked while another process has locked the database, and answers reads', async () => {
  const other = openSqlite(path);
  other.exec('BEGIN IMMEDIATE');
  const refused = {
    status: 503,
    headers: { 'retry-after': '5' },
    body: { error: { code: 'database_locked' } },
  };
  expect(await addSecret('first')).toMatchObject(refused);
  // After the first write has waited in vain, later writes do not delay reads.
  const [write, read] = await Promise.all([timed(() => addSecret('second')), timed(readPod)]);
  expect(write.answer).toMatchObject(refused);
  expect(read.answer.status).toBe(200);
  expect(Math.max(write.ms, read.ms)).toBeLessThan(AT_ONCE_MS);
  other.exec('COMMIT');
  other.close();
  expect((await addSecret('third')).status).toBe(200);
});

it('waits for a lock that is held shortly, while the event loop continues', async () => {
  const other = openSqlite(path);
  other.exec('BEGIN IMMEDIATE');
  setTimeout(() => other.exec('COMMIT'), 300);
  expect((await addSecret('waits')).status).toBe(200);
  other.close();
});

it('rejects writes with storage_full if the database may not grow, and answers reads', async () => {
  const [pages] = await runSql(db, 'pragma page_count');
  await runSql(db, `pragma max_page_count = ${pages?.['page_count']}`);
  const statuses = new Set<number>();
  for (let index = 0; index < 50; index += 1) {
    const answer = await addSecret(`s${index}`, 'x'.repeat(30_000));
    statuses.add(answer.status);
    if (answer.status !== 503) continue;
    expect(answer.headers['retry-after']).toBe('60');
    expect(answer.body.error).toMatchObject({
      code: 'storage_full',
      message: 'The storage is full',
    });
    break;
  }
  expect(statuses).toContain(503);
  expect((await readPod()).status).toBe(200);
});
