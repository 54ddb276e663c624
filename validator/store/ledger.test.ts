/** The ledger on either database: its schema, what several processes share of it, and the way from an older one. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openSqlite } from '#shared/runtime/sqlite.ts';
import { createEmptyPostgresDatabase, onPostgres } from '../../test/fakes/central-database.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { createInspections, HOLD_MS } from '../inspection/inspections.ts';
import { takeLease } from './lease.store.ts';
import { MIGRATIONS, SQLITE_WORDS } from './ledger.migrations.ts';
import type { Ledger } from './ledger.tables.ts';
import { besideLedger, isShared, openLedger } from './ledger.ts';
import { lookIntoLedger } from './ledger-look.ts';

let folder: string;
let address: string;
let ledger: Ledger;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-ledger-'));
  address = onPostgres() ? await createEmptyPostgresDatabase() : join(folder, 'ledger.db');
  ledger = await openLedger(address);
});
afterEach(async () => {
  await ledger.destroy();
  rmSync(folder, { recursive: true });
});

it('is opened as often as wanted, and never changes evidence', async () => {
  await (await openLedger(address)).destroy();
  expect(isShared(ledger)).toBe(onPostgres());
  const row = { executor_id: 'x', seq: 1, finished_ms: 2 ** 41, document: '{}', signature: '0x' };
  await ledger
    .insertInto('evidence')
    .values({ id: 'a', verdict: 'ok', ...row })
    .execute();
  await expect(ledger.updateTable('evidence').set({ seq: 2 }).execute()).rejects.toThrow(
    'evidence is never changed',
  );
  expect(await ledger.selectFrom('evidence').select(['seq', 'finished_ms']).execute()).toEqual([
    { seq: 1, finished_ms: 2 ** 41 },
  ]);
});

it('is looked into without being changed', async () => {
  const { schema, known, tables } = (await lookIntoLedger(address)) ?? {};
  expect(schema).toBe(known);
  expect(tables).toContainEqual({ name: 'evidence', rows: 0 });
  if (onPostgres()) return;
  expect(await lookIntoLedger(join(folder, 'none.db'))).toBeNull();
  expect(existsSync(join(folder, 'none.db'))).toBe(false);
});

it('keeps what waited in the outbox of an older version', async () => {
  const file = join(folder, 'older.db');
  const older = openSqlite(file);
  for (const migration of MIGRATIONS.slice(0, 3)) {
    for (const statement of migration(SQLITE_WORDS)) older.exec(statement);
  }
  older.exec(`pragma user_version = 3;
    insert into outbox (kind, subject, body, attempts, next_ms, parked_ms, last_error)
      values ('set-weights', 7, '{}', 2, 5, null, 'away')`);
  older.close();
  const looking = besideLedger({ address: file, variable: '--ledger' }, 'read', async () => true);
  await expect(looking).rejects.toThrow(
    /^the ledger has schema 3, this program reads \d+: start a validator of this version on it/,
  );
  const newer = await openLedger(file);
  expect(await newer.selectFrom('outbox').selectAll().execute()).toMatchObject([
    { seq: 1, kind: 'set-weights', lane: 'set-weights', subject: '7', attempts: 2, next_ms: 5 },
  ]);
  await newer.destroy();
});

it('gives an executor to one process at a time, and to another once the first is silent', async () => {
  const clock = createManualClock();
  const processOf = (holder: string) =>
    createInspections({ ledger, clock, holder, intervalMs: 900_000, pauseMs: 0 });
  const [one, two] = [processOf('one'), processOf('two')];
  const ids = Array.from({ length: 20 }, (_, at) => `executor ${at}`);
  await one.follow(new Set(ids));
  const [first, second] = await Promise.all([one.claim(ids), two.claim(ids)]);
  // Of a file there is one process: it takes what another left.
  if (!onPostgres()) return expect([first, second]).toEqual([first, first]);
  expect([...first, ...second].length).toBe(20);
  expect(new Set([...first, ...second]).size).toBe(20);
  await clock.advance(HOLD_MS);
  await two.hold();
  await clock.advance(1);
  expect((await two.claim(ids)).toSorted()).toEqual(first.toSorted());
  const [taken = ''] = first;
  const times = { checkedMs: clock.now(), factsMs: clock.now() };
  const ended = { executorId: taken, verdict: 'verified', ...times } as const;
  const memory = { transportFailures: 0, pauseMs: null, streaks: {}, found: {} };
  const end = (process: typeof one) =>
    ledger.transaction().execute((tx) => process.end(tx, { ...ended, ...memory }, true));
  if (first.length > 0) {
    await expect(end(one)).rejects.toThrow('taken this executor over');
    await end(two);
    expect(await one.due()).not.toContain(taken);
  }
});

it('lets one process at a time have a lease', async () => {
  const take = (holder: string, nowMs: number) =>
    takeLease(ledger, { name: 'weights', holder, untilMs: nowMs + 100 }, nowMs);
  const taken = [await take('one', 0), await take('two', 50), await take('one', 60)];
  const later = [await take('two', 161), await take('one', 162)];
  // Of a file there is one process.
  const alone = !onPostgres();
  expect([taken, later]).toEqual([
    [true, alone, true],
    [true, alone],
  ]);
});
