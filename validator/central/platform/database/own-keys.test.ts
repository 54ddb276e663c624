/** Real processes of the central API that have wrong keys, on both engines of the database. */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { openSqlite } from '#shared/runtime/sqlite.ts';
import { eventually } from '../../../../test/fakes/eventually.ts';
import {
  createEmptyPostgresDatabase,
  onPostgres,
} from '../../../../test/fakes/scenes/central-database.ts';
import { writeCentralKeys } from '../../../../test/fakes/scenes/central-fixture.ts';
import { startCentralProcess } from '../../../../test/fakes/scenes/central-process.ts';
import { spawnProgram } from '../../../../test/fakes/scenes/program-process.ts';

const HOTKEY = '5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY';
/** Exit status of a start that a retry does not repair. */
const DO_NOT_RETRY = 6;
const ENDS_WITHIN_MS = 60_000;

function newHome(): string {
  const home = mkdtempSync(join(tmpdir(), 'podwright-keys-'));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  return home;
}

/** Writes the address to a file, from which the process reads it. */
function environmentOf(home: string, address: string): Record<string, string> {
  const file = join(home, 'address');
  writeFileSync(file, address, { mode: 0o600 });
  return {
    CENTRAL_HOME: home,
    CENTRAL_DATABASE_FILE: file,
    CENTRAL_GATEWAY_URL: 'http://127.0.0.1:1',
    CENTRAL_GATEWAY_HOTKEY: HOTKEY,
  };
}

/** Starts a process that must refuse; returns its last line. */
async function refusalOf(environment: Record<string, string>, ...args: string[]): Promise<string> {
  const { child, output } = spawnProgram('validator/central/main.ts', args, {
    CENTRAL_PORT: '0',
    ...environment,
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  await eventually('the process ended', () => child.exitCode !== null, ENDS_WITHIN_MS);
  expect([child.exitCode, output()]).toEqual([DO_NOT_RETRY, expect.any(String)]);
  return output().trim().split('\n').at(-1) ?? '';
}

/** Returns the address of a database that a central API with the keys of the home has used. */
async function usedDatabase(home: string): Promise<string> {
  const address = onPostgres() ? await createEmptyPostgresDatabase() : join(home, 'used.db');
  writeCentralKeys(home);
  await (await startCentralProcess(environmentOf(home, address))).end();
  return address;
}

async function addForeignTable(address: string): Promise<void> {
  const statement = 'create table songs (title text)';
  if (!onPostgres()) {
    const database = openSqlite(address);
    database.exec(statement);
    return database.close();
  }
  const client = new Client({ connectionString: address });
  await client.connect();
  await client.query(statement);
  await client.end();
}

it('ends with status 6 and one line for another secret, and for missing keys, which it does not create', async () => {
  const address = await usedDatabase(newHome());
  const home = newHome();
  const environment = environmentOf(home, address);
  expect(await refusalOf(environment)).toMatch(
    /central\.\w+ is missing, .*(?:copy|Restore) the file/,
  );
  writeCentralKeys(home);
  writeFileSync(join(home, 'central.secret'), randomBytes(32), { mode: 0o600 });
  expect(await refusalOf(environment)).toMatch(/the secret \(CENTRAL_SECRET_FILE\) is not the one/);
  writeCentralKeys(home);
  rmSync(join(home, 'central.seed'));
  expect(await refusalOf(environment)).toMatch(
    /central\.seed is missing, .*(?:copy|Restore) the file/,
  );
  expect(existsSync(join(home, 'central.seed'))).toBe(false);
});

it('ends with status 6 for another hotkey, which --fresh accepts', async () => {
  const first = newHome();
  const address = await usedDatabase(first);
  const home = newHome();
  writeCentralKeys(home);
  writeFileSync(join(home, 'central.seed'), '0b'.repeat(32), { mode: 0o600 });
  const environment = environmentOf(home, address);
  expect(await refusalOf(environment)).toMatch(
    /the hotkey 5\w+, but this database is used with 5\w+, .*: copy the seed file of the other/,
  );
  const { child, output } = spawnProgram('validator/central/main.ts', ['--fresh'], {
    CENTRAL_PORT: '0',
    ...environment,
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  await eventually('ready', () => output().includes('central API ready'), ENDS_WITHIN_MS);
  child.kill('SIGTERM');
  await eventually('ended', () => child.exitCode !== null, ENDS_WITHIN_MS);
  expect(await refusalOf(environmentOf(first, address))).toMatch(/this database is used with 5/);
});

it('leaves no keys in the home of a process on a database of another program', async () => {
  const home = newHome();
  const address = onPostgres() ? await createEmptyPostgresDatabase() : join(home, 'other.db');
  await addForeignTable(address);
  expect(await refusalOf(environmentOf(home, address))).toMatch(
    /holds tables .*Nothing was written/,
  );
  for (const name of ['central.secret', 'central.seed']) {
    expect([name, existsSync(join(home, name))]).toEqual([name, false]);
  }
});
