import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ConfigError } from '#shared/runtime/config.ts';
import { lockDatabaseFile, lockHome } from './open-database.ts';

const have = (address: string) =>
  lockDatabaseFile({ address, variable: 'PLACE', kind: 'evidence' });

it('allows one process at a time on a database file, and many on a server', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-'));
  const file = join(folder, 'ledger.db');
  const first = await have(file);
  const words = `another process runs on the evidence store of a validator in ${file}: stop it`;
  await expect(have(file)).rejects.toThrow(words);
  // A lock that is released later is not a configuration error.
  await expect(have(file)).rejects.not.toBeInstanceOf(ConfigError);
  first.close();
  (await have(file)).close();
  for (const address of [
    'postgres://me@there/x',
    'mysql://me@there/x',
    ':memory:',
    ':temporary:',
  ]) {
    const one = await have(address);
    (await have(address)).close();
    one.close();
  }
  await expect(have('/proc/none/ledger.db')).rejects.toThrow(ConfigError);
  const letter = join(folder, 'letter.txt');
  writeFileSync(letter, 'Dear reader, this is no database. '.repeat(50));
  await expect(have(letter)).rejects.toThrow('letter.txt cannot be read as the evidence store');
  expect(readdirSync(folder).filter((name) => name.startsWith('letter'))).toEqual(['letter.txt']);
  rmSync(folder, { recursive: true });
});

it('allows one process at a time in a home, whatever file has its database', async () => {
  const home = mkdtempSync(join(tmpdir(), 'podwright-'));
  const address = join(home, 'ledger.db');
  const usual = { address, variable: 'VALIDATOR_HOME', kind: 'evidence' } as const;
  const words = `${address}: stop it, or name another place with VALIDATOR_HOME`;
  const first = lockHome(usual, join(home, 'other.db'));
  expect(() => lockHome(usual, join(home, 'third.db'))).toThrow(words);
  await expect(have(address)).rejects.toThrow('another process runs on');
  lockHome(usual, 'postgres://me@there/x').close();
  first.close();
  const second = await have(address);
  expect(() => lockHome(usual, join(home, 'other.db'))).toThrow(words);
  lockHome(usual, address).close();
  second.close();
  rmSync(home, { recursive: true });
});
