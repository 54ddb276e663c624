/** Databases of something else stay as they are: on either engine, for either kind of ours. */
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
import { createEmptyPostgresDatabase, onPostgres } from '../../test/fakes/central-database.ts';
import {
  besideCentral,
  openCentralDatabase,
  readCentralDatabase,
} from '../central/platform/database/database.ts';
import { besideLedger, openLedger } from '../store/ledger.ts';
import { lookIntoLedger } from '../store/ledger-look.ts';
import { haveAlone } from './alone.ts';
import { tablesIn } from './ownership.ts';

let folder: string;
let address: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-ownership-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const newAddress = async (name: string) =>
  onPostgres() ? createEmptyPostgresDatabase() : join(folder, name);

/** Runs statements as a program that is none of ours. */
async function elsewhere(...statements: string[]): Promise<void> {
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
  ledger: async () => closed(await openLedger(address)),
  readCentral: () =>
    readCentralDatabase({ address, variable: '--database' }, async () => undefined),
  readLedger: () => besideLedger({ address, variable: '--ledger' }, 'read', async () => undefined),
  besideCentral: () => besideCentral({ address, variable: '--database' }, async () => undefined),
  ledgerLook: async () => void (await lookIntoLedger(address)),
};
const refusal = (message: string) => ({
  name: 'ConfigError',
  message: expect.stringContaining(message),
});
const where = () => (onPostgres() ? `database ${new URL(address).pathname.slice(1)}` : address);

it('changes nothing in a database of another program, and says what it found', async () => {
  address = await newAddress('orders.db');
  await elsewhere(
    'create table meta (name text, value text)',
    "insert into meta values ('schema', '3')",
    'create table "Orders" (id text)',
    ...(onPostgres() ? [] : ['pragma user_version = 3', 'pragma journal_mode = delete']),
  );
  const before = onPostgres() ? null : readFileSync(address);
  const found = `it holds tables or views of something else (Orders, meta). Nothing was written there.`;
  for (const open of [openings.central, openings.besideCentral]) {
    await expect(open()).rejects.toMatchObject(
      refusal(`${where()} is no database of a central API: ${found}`),
    );
  }
  for (const open of [openings.ledger, openings.ledgerLook]) {
    await expect(open()).rejects.toMatchObject(
      refusal(`${where()} is no ledger of a validator: ${found}`),
    );
  }
  await expect(openings.ledger()).rejects.toThrow(
    'Name an empty database, or the ledger of a validator itself, with VALIDATOR_DATABASE.',
  );
  expect(onPostgres() ? null : readFileSync(address)).toEqual(before);
  await elsewhere('drop table "Orders"', 'drop table meta', 'create view seen as select 1');
  await expect(openings.central()).rejects.toThrow('views of something else (seen)');
  await elsewhere('drop view seen');
  await openings.central();
});

it('takes each of its own kinds again, and never for the other', async () => {
  address = await newAddress('central.db');
  await openings.central();
  await openings.central();
  await openings.besideCentral();
  await expect(openings.ledger()).rejects.toMatchObject(
    refusal('it holds the database of a central API'),
  );
  address = await newAddress('ledger.db');
  await openings.ledger();
  // What somebody else put beside it later takes nothing of it away.
  await elsewhere('create table notes (id text)');
  await openings.ledger();
  await openings.ledgerLook();
  await expect(openings.central()).rejects.toMatchObject(
    refusal('it holds the ledger of a validator. '),
  );
});

it('refuses a file that is none of SQLite, and takes an empty one', async () => {
  const file = join(folder, 'letter.txt');
  const text = 'Dear reader, this is no database. '.repeat(50);
  writeFileSync(file, text);
  await expect(openCentralDatabase(file)).rejects.toMatchObject(
    refusal(`${file} cannot be read as a database of a central API: file is not a database`),
  );
  await expect(openLedger(file)).rejects.toMatchObject(
    refusal('file is not a database. Correct VALIDATOR_DATABASE.'),
  );
  expect(readFileSync(file, 'utf8')).toBe(text);
  writeFileSync(file, '');
  const ledger = await openLedger(file);
  expect(await tablesIn(ledger)).toContain('evidence');
  await ledger.destroy();
});

it('has who looks from outside refuse what is empty, and leaves it empty', async () => {
  address = await newAddress('empty.db');
  if (!onPostgres()) writeFileSync(address, '');
  const what = (name: string) => `${where()} is empty: no ${name} is there.`;
  for (const open of [openings.readCentral, openings.besideCentral]) {
    await expect(open()).rejects.toMatchObject(refusal(what('database of a central API')));
    await expect(open()).rejects.toThrow('Name the database of a central API with --database.');
  }
  await expect(openings.readLedger()).rejects.toMatchObject(refusal(what('ledger of a validator')));
  await expect(openings.readLedger()).rejects.toThrow('with --ledger.');
  await openings.ledgerLook();
  if (onPostgres()) return;
  expect(readdirSync(folder)).toEqual(['empty.db']);
  expect(readFileSync(address)).toHaveLength(0);
});

it('reads a copy without changing a byte of it', async () => {
  const copyOf = (file: string) => {
    const original = openSqlite(file);
    address = `${file}.copy`;
    original.exec(`vacuum into '${address}'`);
    original.close();
    return readFileSync(address);
  };
  address = join(folder, 'ledger.db');
  await openings.ledger();
  const ledger = copyOf(address);
  await openings.readLedger();
  await openings.ledgerLook();
  expect(readFileSync(address)).toEqual(ledger);
  address = join(folder, 'central.db');
  await openings.central();
  const central = copyOf(address);
  await openings.readCentral();
  expect(readFileSync(address)).toEqual(central);
  expect(readdirSync(folder).filter((name) => name.includes('.copy'))).toHaveLength(2);
});

it('refuses a folder, a part of a file, and what cannot be written, with the name that leads there', async () => {
  const as = (what: string, name: string) =>
    refusal(`${address} cannot be read as a ledger of a validator: ${what}. Correct ${name}.`);
  address = folder;
  await expect(openings.ledger()).rejects.toMatchObject(as('it is no file', 'VALIDATOR_DATABASE'));
  await expect(openings.readLedger()).rejects.toMatchObject(as('it is no file', '--ledger'));
  await expect(openings.readCentral()).rejects.toMatchObject(refusal('Correct --database.'));
  const whole = join(folder, 'ledger.db');
  await (await openLedger(whole)).destroy();
  address = join(folder, 'part.db');
  writeFileSync(address, readFileSync(whole).subarray(0, 20_000));
  const malformed = 'database disk image is malformed';
  await expect(openings.ledger()).rejects.toMatchObject(as(malformed, 'VALIDATOR_DATABASE'));
  await expect(openings.readLedger()).rejects.toMatchObject(as(malformed, '--ledger'));
  // Whoever runs the tests may write every file: a path below a file, and a journal that is none.
  address = join(whole, 'x.db');
  await expect(openings.central()).rejects.toMatchObject(refusal('CENTRAL_DATABASE: the database'));
  address = join(folder, 'held.db');
  writeFileSync(address, readFileSync(whole));
  mkdirSync(`${address}-wal`);
  await expect(openings.ledger()).rejects.toMatchObject(
    refusal('unable to open database file. Copy it into a folder that this user may write'),
  );
});

it('goes on from a file that its first start was killed in', async () => {
  if (onPostgres()) return;
  const file = openSqlite(join(folder, 'written.db'));
  file.exec(
    'pragma journal_mode = delete; pragma cache_size = 1; create table dropped (a); drop table dropped; begin',
  );
  file.exec(`create table begun as with recursive numbers (n) as
    (select 1 union all select n + 1 from numbers where n < 5000) select hex(randomblob(50)) from numbers`);
  // As a kill leaves it: with a journal that has to be rolled back.
  address = join(folder, 'killed.db');
  for (const end of ['', '-journal']) {
    copyFileSync(join(folder, `written.db${end}`), `${address}${end}`);
  }
  file.close();
  const alone = await haveAlone({ address, variable: 'CENTRAL_DATABASE', kind: 'central' });
  await openings.central();
  alone.close();
  expect(await lookIntoLedger(address).catch(({ message }) => message)).toContain(
    'it holds the database of a central API',
  );
});
