/** Moves of an evidence store to the tests' PostgreSQL server. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterEach, beforeEach, expect, inject, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { openSqlite } from '#shared/runtime/sqlite.ts';
import { damageTable } from '../../../test/fakes/faults/damage-file.ts';
import { startPostgresProxy } from '../../../test/fakes/faults/postgres-proxy.ts';
import { createManualClock } from '../../../test/fakes/manual-clock.ts';
import { createEmptyPostgresDatabase } from '../../../test/fakes/scenes/central-database.ts';
import { createSeededRandom } from '../../../test/fakes/seeded-random.ts';
import { EVIDENCE_MOVE, openEvidenceStore, withStore } from '../../store/evidence-store.ts';
import { judgeDatabase, readDatabaseFacts } from '../database.check.ts';
import { lockDatabaseFile } from '../open-database.ts';
import { restoreDatabase } from '../restore-database.ts';
import { runMoveCommand } from './move-command.ts';
import { placeOf } from './move-database.ts';

/** 2026-11-27 07:00:00 UTC. */
const NOW_MS = 1_795_762_800_000;

let folder: string;
let path: string;
let url: string;
let printed: string;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-move-'));
  path = join(folder, 'ledger.db');
  printed = '';
  await (await openEvidenceStore(path)).destroy();
  inFile(`
    INSERT INTO cycles VALUES (1, 5), (2, 9007199254740991);
    INSERT INTO cycle_entries VALUES (2, 'Zebra', 'ok', 1, 0, '{"a": "ü\\n\\"{}"}'), (2, 'ape', 'failed', 1, 0, ''),
      (1, 'ape', 'withheld', 1, -7, 'NULL');
    INSERT INTO outbox (seq, kind, subject, lane, rank, idempotency_key, body, attempts, next_ms, last_error)
      VALUES (3, 'set-weights', '1', '', 0, '', '', 0, 0, ''), (9, 'set-weights', '2', '', 0, '', '', 0, 0, '');
    DELETE FROM outbox WHERE seq = 9`);
  url = await createEmptyPostgresDatabase();
});
afterEach(() => rmSync(folder, { recursive: true }));

const location = () => ({ address: path, variable: 'PLACE', kind: 'evidence' }) as const;

function inFile(sql: string): void {
  const database = openSqlite(path);
  database.exec(sql);
  database.close();
}

async function onServer(sql: string): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(sql)).rows ?? [];
  } finally {
    await client.end();
  }
}

function move(...args: string[]): Promise<void> {
  const progress = { step: () => undefined, at: () => undefined };
  const print = (text: string) => {
    printed += text;
  };
  return runMoveCommand(
    { args, usual: location(), kind: EVIDENCE_MOVE },
    { clock: createManualClock(NOW_MS), random: createSeededRandom(1), progress, print },
  );
}

const isRefused = (code: string, text: string) => ({
  name: 'ConfigError',
  message: expect.stringMatching(new RegExp(`^${code}: .*${text}`, 's')),
});

it('moves a store, whose file then starts no more, until the move is undone', async () => {
  await move('--to', url);
  expect(printed).toContain(`6 rows of `);
  expect(printed).toContain(`set PLACE to the address of ${placeOf(url)}`);
  const store = await openEvidenceStore(url);
  const entries = await store
    .selectFrom('cycle_entries')
    .selectAll()
    .orderBy('entry_json')
    .execute();
  expect(entries.map(({ entry_json }) => entry_json)).toEqual([
    '',
    'NULL',
    String.raw`{"a": "ü\n\"{}"}`,
  ]);
  const cycles = await store.selectFrom('cycles').selectAll().orderBy('number').execute();
  expect(cycles).toEqual([
    { number: 1, ended_ms: 5 },
    { number: 2, ended_ms: 9_007_199_254_740_991 },
  ]);
  // The row with number 9 was deleted, and its number must not return.
  const added = await onServer(
    "insert into outbox (kind, subject, lane, rank, idempotency_key, body, attempts, next_ms, made_ms, last_error) values ('', '', '', 0, '', '', 0, 0, 0, '') returning seq",
  );
  expect(added).toEqual([{ seq: '10' }]);
  await store.destroy();

  const problem = `${path} was moved to ${placeOf(url)} at 2026-11-27T07:00:00Z. Set PLACE to`;
  await expect(lockDatabaseFile(location())).rejects.toThrow(problem);
  await expect(openEvidenceStore(path, 'PLACE')).rejects.toThrow(problem);
  await expect(withStore(location(), 'read', async () => undefined)).rejects.toThrow(
    `npm run validator -- move --undo --ledger ${path}`,
  );
  const byOption = { ...location(), variable: '--home' };
  await expect(lockDatabaseFile(byOption)).rejects.toThrow('Set VALIDATOR_DATABASE to the address');
  await expect(restoreDatabase(location(), path, 0)).rejects.toThrow(
    `nothing was restored, because ${problem}`,
  );
  const facts = await readDatabaseFacts(systemClock, location(), { folder: undefined });
  expect(judgeDatabase(facts, location(), { hours: 6 })).toMatchObject({
    status: 'fail',
    measured: expect.stringContaining(problem),
    remedy: 'set PLACE to the address of the other database',
  });
  printed = '';
  await move('--to', url);
  expect(printed).toContain('was already copied');
  const other = await createEmptyPostgresDatabase();
  await expect(move('--to', other)).rejects.toMatchObject(isRefused('already_moved', placeOf(url)));

  await move('--undo');
  expect(printed).toContain('lacks all changes since 2026-11-27T07:00:00Z');
  (await lockDatabaseFile(location())).close();
  await expect(move('--undo')).rejects.toMatchObject(isRefused('not_moved', 'nothing to undo'));
  await expect(move('--to', url)).rejects.toMatchObject(isRefused('target_not_empty', ''));
});

it('reads the address from a file, and rejects a password in the arguments', async () => {
  const file = join(folder, 'address');
  writeFileSync(file, `${url}\n`, { mode: 0o644 });
  await expect(move('--to-file', file)).rejects.toThrow(`mode 644): chmod 600 ${file}`);
  chmodSync(file, 0o600);
  for (const address of ['postgres://me:hush@there/x', 'postgres://me@there/x?password=hush']) {
    await expect(move('--to', address)).rejects.toMatchObject(
      isRefused('password_in_arguments', '--to-file'),
    );
  }
  for (const args of [
    [],
    ['--to', url, '--undo'],
    ['--to', 'somewhere.db'],
    ['--to-file', join(folder, 'none')],
    ['--to', url, 'word'],
    ['--ledger', 'postgres://there/x', '--to', url],
  ]) {
    await expect(move(...args)).rejects.toMatchObject({ name: 'ConfigError' });
  }
  await move('--to-file', file);
  expect(printed).toContain('are equal');
});

it('prints its usage without a file or a server', async () => {
  printed = '';
  await move('--help');
  expect(printed).toMatch(/^ {2}npm run validator -- move --to postgres:/m);
  expect(printed).toContain('--ledger FILE names another SQLite file than PLACE.');
});

it('refuses while a process has the file, and names the stopped process as the remedy', async () => {
  const lock = await lockDatabaseFile(location());
  await expect(move('--to', url)).rejects.toThrow(
    `source_in_use: another process runs on the evidence store of a validator in ${path}`,
  );
  lock.close();
  await move('--to', url);
});

it('refuses a file that is missing, damaged or of another schema, and leaves both sides unchanged', async () => {
  await expect(move('--ledger', join(folder, 'none.db'), '--to', url)).rejects.toMatchObject(
    isRefused('source_unusable', 'there is no evidence store'),
  );
  await expect(move('--ledger', join(folder, 'none.db'), '--to', url)).rejects.toThrow(
    'Name the SQLite file to be moved with --ledger FILE',
  );
  inFile('PRAGMA user_version = 2');
  await expect(move('--to', url)).rejects.toMatchObject(
    isRefused('schema_differs', 'has schema 2, this program has'),
  );
  inFile(`PRAGMA user_version = ${EVIDENCE_MOVE.schema}; PRAGMA foreign_keys = OFF;
    INSERT INTO cycle_entries VALUES (7, 'x', 'ok', 1, 0, '')`);
  await expect(move('--to', url)).rejects.toMatchObject(
    isRefused('source_damaged', 'references a missing row of cycles'),
  );
  inFile('DELETE FROM cycle_entries WHERE cycle = 7');
  damageTable(path, 'evidence');
  await expect(move('--to', url)).rejects.toMatchObject(isRefused('source_damaged', 'is damaged'));
  expect(await onServer("select 1 from pg_class where relname = 'evidence'")).toEqual([]);
});

it('refuses a target with rows, with tables of another program, or without rights', async () => {
  await onServer('create table theirs (id text)');
  await expect(move('--to', url)).rejects.toMatchObject(
    isRefused('target_unusable', 'tables or views of another program'),
  );
  await onServer('drop table theirs');
  await (await openEvidenceStore(url)).destroy();
  await onServer("insert into leases values ('weights', 'process', 1)");
  await expect(move('--to', url)).rejects.toMatchObject(
    isRefused('target_not_empty', 'is not empty'),
  );
  url = await createEmptyPostgresDatabase();
  const role = `guest_${new URL(url).pathname.slice(1)}`;
  await onServer(`create role ${role} login`);
  try {
    const asGuest = url.replace(/\/\/[^@]*@/, `//${role}@`);
    await expect(move('--to', asGuest)).rejects.toMatchObject(
      isRefused('target_no_rights', 'permission denied'),
    );
    await onServer(`grant usage, create on schema public to ${role}`);
    await move('--to', asGuest);
  } finally {
    await onServer(`drop owned by ${role}`);
    await onServer(`drop role ${role}`);
  }
});

it('refuses a server that does not answer', async () => {
  await expect(move('--to', 'postgres://me@localhost:1/x')).rejects.toThrow(
    'target_unreachable: --to: PostgreSQL at',
  );
});

it('reports a lost connection, and continues when it is repeated', async () => {
  const proxy = await startPostgresProxy(inject('centralDatabase'));
  const closed = new Promise<void>((resolve) => {
    proxy.watch(async (sql) => {
      if (!sql.includes('insert into "cycle_entries"')) return;
      proxy.watch(async () => undefined);
      void proxy.close().then(resolve);
    });
  });
  await expect(move('--to', proxy.urlOf(url))).rejects.toThrow(
    /^connection_lost: .*Repeat the command/,
  );
  await closed;
  await move('--to', url);
  expect(printed).toContain('are equal');
});

it('stops at text that PostgreSQL cannot store, with the column; then neither database starts', async () => {
  inFile("UPDATE cycle_entries SET entry_json = 'a' || char(0) || 'b' WHERE cycle = 1");
  await expect(move('--to', url)).rejects.toMatchObject(
    isRefused('text_not_storable', 'cycle_entries.entry_json'),
  );
  await expect(lockDatabaseFile(location())).rejects.toThrow(/the move of .* is not complete/);
  await expect(openEvidenceStore(url)).rejects.toThrow(`has an incomplete copy of ${path}`);
  await move('--undo');
  inFile("UPDATE cycle_entries SET entry_json = 'ab' WHERE cycle = 1");
  await expect(move('--to', url)).rejects.toMatchObject(isRefused('target_not_empty', ''));
  url = await createEmptyPostgresDatabase();
  await move('--to', url);
});

it('finds rows of the copy that were changed before the end of the move', async () => {
  inFile('UPDATE cycle_entries SET entry_json = char(0) WHERE cycle = 2');
  await expect(move('--to', url)).rejects.toThrow('text_not_storable');
  await onServer(
    'update cycles set ended_ms = 6 where number = 1; delete from cycles where number = 2',
  );
  inFile(
    "UPDATE cycle_entries SET entry_json = '' WHERE cycle = 2; DELETE FROM cycle_entries WHERE cycle = 2",
  );
  await expect(move('--to', url)).rejects.toMatchObject(
    isRefused('copy_differs', 'cycles \\(2 rows in the file, 1 in the copy\\)'),
  );
});

it('does not copy tables of other programs, and lists them', async () => {
  inFile('CREATE TABLE notes (text TEXT PRIMARY KEY) STRICT');
  await move('--to', url);
  expect(printed).toContain('not copied, tables of other programs: notes');
});
