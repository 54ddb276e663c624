/** Databases of other programs stay unchanged, on either engine and for both kinds of our databases. */
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openSqlite } from '#shared/runtime/sqlite.ts';
import {
  createEmptyPostgresDatabase,
  onPostgres,
} from '../../test/fakes/scenes/central-database.ts';
import {
  besideCentral,
  openCentralDatabase,
  readCentralDatabase,
} from '../central/platform/database/database.ts';
import { openEvidenceStore, summarizeStore, withStore } from '../store/evidence-store.ts';
import { lockDatabaseFile } from './open-database.ts';
import { tablesIn } from './ownership.ts';

let folder: string;
let address: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-ownership-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const newAddress = async (name: string) =>
  onPostgres() ? createEmptyPostgresDatabase() : join(folder, name);

/** Runs statements as another program would. */
async function asOtherProgram(...statements: string[]): Promise<void> {
  if (onPostgres()) {
    const client = new Client({ connectionString: address });
    await client.connect();
    for (const statement of statements) await client.query(statement);
    return client.end();
  }
  const file = openSqlite(address);
  for (const statement of statements) file.exec(statement);
  file.close();
}

const closed = async (db: { destroy(): Promise<void> }) => db.destroy();
const openings = {
  central: async () => closed(await openCentralDatabase(address)),
  store: async () => closed(await openEvidenceStore(address)),
  readCentral: () =>
    readCentralDatabase({ address, variable: '--database' }, async () => undefined),
  readStore: () => withStore({ address, variable: '--ledger' }, 'read', async () => undefined),
  besideCentral: () => besideCentral({ address, variable: '--database' }, async () => undefined),
  summarize: async () => void (await summarizeStore(address)),
};
const refusal = (message: string) => ({
  name: 'ConfigError',
  message: expect.stringContaining(message),
});
const where = () => (onPostgres() ? `database ${new URL(address).pathname.slice(1)}` : address);

it('leaves a database of another program unchanged and names its tables', async () => {
  address = await newAddress('orders.db');
  await asOtherProgram(
    'create table meta (name text, value text)',
    "insert into meta values ('schema', '3')",
    'create table "Orders" (id text)',
    ...(onPostgres() ? [] : ['pragma user_version = 3', 'pragma journal_mode = delete']),
  );
  const before = onPostgres() ? null : readFileSync(address);
  const found = `it holds tables or views of another program (Orders, meta). Nothing was written there.`;
  for (const open of [openings.central, openings.besideCentral]) {
    await expect(open()).rejects.toMatchObject(
      refusal(`${where()} is not the database of a central API: ${found}`),
    );
  }
  for (const open of [openings.store, openings.summarize]) {
    await expect(open()).rejects.toMatchObject(
      refusal(`${where()} is not the evidence store of a validator: ${found}`),
    );
  }
  await expect(openings.store()).rejects.toThrow(
    'Name an empty database, or the evidence store of a validator itself, with VALIDATOR_DATABASE.',
  );
  expect(onPostgres() ? null : readFileSync(address)).toEqual(before);
  await asOtherProgram('drop table "Orders"', 'drop table meta', 'create view seen as select 1');
  await expect(openings.central()).rejects.toThrow('views of another program (seen)');
  await asOtherProgram('drop view seen');
  await openings.central();
});

it('reopens databases of both kinds and never opens one kind as the other', async () => {
  address = await newAddress('central.db');
  await openings.central();
  await openings.central();
  await openings.besideCentral();
  await expect(openings.store()).rejects.toMatchObject(
    refusal('it holds the database of a central API'),
  );
  address = await newAddress('ledger.db');
  await openings.store();
  // A foreign table that was added later changes nothing.
  await asOtherProgram('create table notes (id text)');
  await openings.store();
  await openings.summarize();
  await expect(openings.central()).rejects.toMatchObject(
    refusal('it holds the evidence store of a validator. '),
  );
});

it('rejects a file that is not SQLite and accepts an empty one', async () => {
  const file = join(folder, 'letter.txt');
  const text = 'Dear reader, this is no database. '.repeat(50);
  writeFileSync(file, text);
  await expect(openCentralDatabase(file)).rejects.toMatchObject(
    refusal(`${file} cannot be read as the database of a central API: file is not a database`),
  );
  await expect(openEvidenceStore(file)).rejects.toMatchObject(
    refusal('file is not a database. Correct VALIDATOR_DATABASE.'),
  );
  expect(readFileSync(file, 'utf8')).toBe(text);
  writeFileSync(file, '');
  const store = await openEvidenceStore(file);
  expect(await tablesIn(store)).toContain('evidence');
  await store.destroy();
});

it('commands reject an empty database and leave it empty', async () => {
  address = await newAddress('empty.db');
  if (!onPostgres()) writeFileSync(address, '');
  const what = (name: string) => `${where()} is empty and has no ${name}.`;
  for (const open of [openings.readCentral, openings.besideCentral]) {
    await expect(open()).rejects.toMatchObject(refusal(what('database of a central API')));
    await expect(open()).rejects.toThrow('Name the database of a central API with --database.');
  }
  await expect(openings.readStore()).rejects.toMatchObject(
    refusal(what('evidence store of a validator')),
  );
  await expect(openings.readStore()).rejects.toThrow('with --ledger.');
  await openings.summarize();
  if (onPostgres()) return;
  expect(readdirSync(folder)).toEqual(['empty.db']);
  expect(readFileSync(address)).toHaveLength(0);
});

it('reads a copy without changing a byte', async () => {
  const copyOf = (file: string) => {
    const original = openSqlite(file);
    address = `${file}.copy`;
    original.exec(`vacuum into '${address}'`);
    original.close();
    return readFileSync(address);
  };
  address = join(folder, 'ledger.db');
  await openings.store();
  const store = copyOf(address);
  await openings.readStore();
  await openings.summarize();
  expect(readFileSync(address)).toEqual(store);
  address = join(folder, 'central.db');
  await openings.central();
  const central = copyOf(address);
  await openings.readCentral();
  expect(readFileSync(address)).toEqual(central);
  expect(readdirSync(folder).filter((name) => name.includes('.copy'))).toHaveLength(2);
});

it('rejects a folder, a truncated file and an unwritable one, and names the variable or option', async () => {
  const as = (what: string, name: string) =>
    refusal(
      `${address} cannot be read as the evidence store of a validator: ${what}. Correct ${name}.`,
    );
  address = folder;
  await expect(openings.store()).rejects.toMatchObject(
    as('it is not a file', 'VALIDATOR_DATABASE'),
  );
  await expect(openings.readStore()).rejects.toMatchObject(as('it is not a file', '--ledger'));
  await expect(openings.readCentral()).rejects.toMatchObject(refusal('Correct --database.'));
  const whole = join(folder, 'ledger.db');
  await (await openEvidenceStore(whole)).destroy();
  address = join(folder, 'part.db');
  writeFileSync(address, readFileSync(whole).subarray(0, 20_000));
  const malformed = 'database disk image is malformed';
  await expect(openings.store()).rejects.toMatchObject(as(malformed, 'VALIDATOR_DATABASE'));
  await expect(openings.readStore()).rejects.toMatchObject(as(malformed, '--ledger'));
  // The tests may run as root, which may write every file: use a path below a file, and a folder as journal.
  address = join(whole, 'x.db');
  await expect(openings.central()).rejects.toMatchObject(refusal('CENTRAL_DATABASE: the database'));
  address = join(folder, 'held.db');
  writeFileSync(address, readFileSync(whole));
  mkdirSync(`${address}-wal`);
  await expect(openings.store()).rejects.toMatchObject(
    refusal('unable to open database file. Copy the file into a folder that this user may write'),
  );
});

it('opens a file whose first start was killed', async () => {
  if (onPostgres()) return;
  const file = openSqlite(join(folder, 'written.db'));
  file.exec(
    'pragma journal_mode = delete; pragma cache_size = 1; create table dropped (a); drop table dropped; begin',
  );
  file.exec(`create table begun as with recursive numbers (n) as
    (select 1 union all select n + 1 from numbers where n < 5000) select hex(randomblob(50)) from numbers`);
  // A kill leaves a journal that has to be rolled back.
  address = join(folder, 'killed.db');
  for (const end of ['', '-journal']) {
    copyFileSync(join(folder, `written.db${end}`), `${address}${end}`);
  }
  file.close();
  const lock = await lockDatabaseFile({ address, variable: 'CENTRAL_DATABASE', kind: 'central' });
  await openings.central();
  lock.close();
  expect(await summarizeStore(address).catch(({ message }) => message)).toContain(
    'it holds the database of a central API',
  );
});
