import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ConfigError } from '#shared/config.ts';
import { haveAlone } from './alone.ts';

const have = (address: string) => haveAlone(address, 'the ledger of a validator', 'PLACE');

it('lets one process at a time run on a database in a file, and many on a server', () => {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-'));
  const file = join(folder, 'ledger.db');
  const first = have(file);
  const words = `another process runs on the ledger of a validator in ${file}: stop it`;
  expect(() => have(file)).toThrow(words);
  // What is over the next time is no wrong configuration.
  expect(() => have(file)).not.toThrow(ConfigError);
  first.close();
  have(file).close();
  for (const address of ['postgres://me@there/x', 'mysql://me@there/x', ':memory:']) {
    const one = have(address);
    have(address).close();
    one.close();
  }
  expect(() => have('/proc/none/ledger.db')).toThrow(ConfigError);
  rmSync(folder, { recursive: true });
});
