/** Databases of something else stay as they are: on either engine, for either kind of ours. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openSqlite } from '#shared/sqlite.ts';
import { createEmptyPostgresDatabase, onPostgres } from '../../test/fakes/central-database.ts';
import { besideCentral, openCentralDatabase } from '../central/db/database.ts';
import { openLedger } from '../ledger/ledger.ts';
import { lookIntoLedger } from '../ledger/ledger-look.ts';
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
  besideCentral: () => besideCentral(address, async () => undefined),
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
  const found = `it holds tables of something else (Orders, meta). Nothing was written there.`;
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
    'Name an empty database, or the ledger of a validator itself, in VALIDATOR_DATABASE.',
  );
  expect(onPostgres() ? null : readFileSync(address)).toEqual(before);
  await elsewhere('drop table "Orders"', 'drop table meta', 'create view seen as select 1');
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
