/** The evidence store on both engines: schema, sharing between processes, and migration. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openSqlite } from '#shared/runtime/sqlite.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import {
  createEmptyPostgresDatabase,
  onPostgres,
} from '../../test/fakes/scenes/central-database.ts';
import { TRUSTED_CLOCK } from '../../test/fakes/trusted-clock.ts';
import { CLAIM_MS, createInspectionQueue } from '../inspection/inspection-queue.ts';
import {
  isShared,
  openEvidenceStore,
  probeStore,
  summarizeStore,
  withStore,
} from './evidence-store.ts';
import { acquireLease } from './lease.store.ts';
import { MIGRATIONS, SQLITE_DIALECT } from './migrations.ts';
import type { EvidenceStore } from './tables.ts';

let folder: string;
let address: string;
let store: EvidenceStore;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-store-'));
  address = onPostgres() ? await createEmptyPostgresDatabase() : join(folder, 'ledger.db');
  store = await openEvidenceStore(address);
});
afterEach(async () => {
  await store.destroy();
  rmSync(folder, { recursive: true });
});

it('reopens a store and rejects updates of evidence', async () => {
  await (await openEvidenceStore(address)).destroy();
  expect(isShared(store)).toBe(onPostgres());
  const row = { executor_id: 'x', seq: 1, finished_ms: 2 ** 41, document: '{}', signature: '0x' };
  await store
    .insertInto('evidence')
    .values({ id: 'a', verdict: 'ok', ...row })
    .execute();
  await expect(store.updateTable('evidence').set({ seq: 2 }).execute()).rejects.toThrow(
    'evidence is never changed',
  );
  expect(await store.selectFrom('evidence').select(['seq', 'finished_ms']).execute()).toEqual([
    { seq: 1, finished_ms: 2 ** 41 },
  ]);
});

it('summarizes a store without changing it', async () => {
  const { schema, known, tables } = (await summarizeStore(address)) ?? {};
  expect(schema).toBe(known);
  expect(tables).toContainEqual({ name: 'evidence', rows: 0 });
  if (onPostgres()) return;
  expect(await summarizeStore(join(folder, 'none.db'))).toBeNull();
  expect(existsSync(join(folder, 'none.db'))).toBe(false);
});

it('migrates waiting messages of an older version', async () => {
  const file = join(folder, 'older.db');
  const older = openSqlite(file);
  for (const migration of MIGRATIONS.slice(0, 3)) {
    for (const statement of migration(SQLITE_DIALECT)) older.exec(statement);
  }
  older.exec(`pragma user_version = 3;
    insert into outbox (kind, subject, body, attempts, next_ms, parked_ms, last_error)
      values ('set-weights', 7, '{}', 2, 5, null, 'away')`);
  older.close();
  const reading = withStore({ address: file, variable: '--ledger' }, 'read', async () => true);
  await expect(reading).rejects.toThrow(
    /^the evidence store has schema 3, this program reads \d+: start a validator of this version on the store/,
  );
  const newer = await openEvidenceStore(file);
  expect(await newer.selectFrom('outbox').selectAll().execute()).toMatchObject([
    { seq: 1, kind: 'set-weights', lane: 'set-weights', subject: '7', attempts: 2, next_ms: 5 },
  ]);
  await newer.destroy();
});

it('lets one process at a time claim an executor, and another process once the claim expired', async () => {
  const clock = createManualClock();
  const processOf = (holder: string) =>
    createInspectionQueue({
      trust: TRUSTED_CLOCK,
      store,
      clock,
      holder,
      intervalMs: 900_000,
      pauseMs: 0,
    });
  const [one, two] = [processOf('one'), processOf('two')];
  const ids = Array.from({ length: 20 }, (_, at) => `executor ${at}`);
  await one.sync(new Set(ids));
  const [first, second] = await Promise.all([one.claim(ids), two.claim(ids)]);
  // Only one process uses a file, so a new process takes over the claims of an earlier one.
  if (!onPostgres()) return expect([first, second]).toEqual([first, first]);
  expect([...first, ...second].length).toBe(20);
  expect(new Set([...first, ...second]).size).toBe(20);
  await clock.advance(CLAIM_MS);
  await two.extendClaims();
  await clock.advance(1);
  expect((await two.claim(ids)).toSorted()).toEqual(first.toSorted());
  const [taken = ''] = first;
  const times = { checkedMs: clock.now(), factsMs: clock.now() };
  const ended = { executorId: taken, verdict: 'verified', ...times } as const;
  const reached = { transportFailures: 0, unreachableSinceMs: null };
  const memory = {
    ...reached,
    pauseMs: null,
    streaks: {},
    streakTimes: {},
    found: {},
    proofRecord: null,
  };
  const end = (process: typeof one) =>
    store.transaction().execute((tx) => process.end(tx, { ...ended, ...memory }, true));
  if (first.length > 0) {
    await expect(end(one)).rejects.toThrow('taken over this executor');
    await end(two);
    expect(await one.due()).not.toContain(taken);
  }
});

it('grants a lease to one process at a time', async () => {
  const acquire = (holder: string, nowMs: number) =>
    acquireLease(store, { name: 'weights', holder, untilMs: nowMs + 100 }, nowMs);
  const taken = [await acquire('one', 0), await acquire('two', 50), await acquire('one', 60)];
  const later = [await acquire('two', 161), await acquire('one', 162)];
  // Only one process uses a file.
  const alone = !onPostgres();
  expect([taken, later]).toEqual([
    [true, alone, true],
    [true, alone],
  ]);
});

it('probes a working store and a closed one', async () => {
  const store = await openEvidenceStore(':memory:');
  expect(await probeStore(store)).toBeNull();
  await store.destroy();
  expect(await probeStore(store)).toMatch(/destroyed|closed|not open/);
});
