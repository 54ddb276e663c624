import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { probeAccountsIn, readProbeAccounts } from './probe-accounts.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-accounts-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const SECRET = 'x'.repeat(32);
const ACCOUNT = { name: 'one', api_key: 'the-key' };

function read(content: unknown, mode = 0o600) {
  const path = join(folder, 'accounts.json');
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  chmodSync(path, mode);
  return readProbeAccounts(path);
}

it('reads the accounts of a private file', () => {
  expect(read({ secret: SECRET, accounts: [ACCOUNT] }).accounts).toEqual([ACCOUNT]);
  expect(probeAccountsIn({})).toBeNull();
});

it.each<[string, unknown, RegExp]>([
  ['without accounts', { secret: SECRET, accounts: [] }, /does not list probe accounts: accounts/],
  ['with a short secret', { secret: 'short', accounts: [ACCOUNT] }, /secret/],
  ['with unknown members', { secret: SECRET, accounts: [ACCOUNT], more: 1 }, /more/],
  ['with two accounts of one name', { secret: SECRET, accounts: [ACCOUNT, ACCOUNT] }, /one name/],
  [
    'with the placeholder of the README',
    { secret: SECRET, accounts: [{ name: 'one', api_key: '…' }] },
    /accounts\.0\.api_key: not an API key: write the key/,
  ],
  ['that is not JSON', '{', /is not JSON/],
])('rejects a file %s, and never shows a key', (_, content, message) => {
  expect(() => read(content)).toThrow(message);
  expect(() => read(content)).not.toThrow('the-key');
});

it('rejects a file that other users can read, and a missing one', () => {
  expect(() => read({ secret: SECRET, accounts: [ACCOUNT] }, 0o644)).toThrow('chmod 600');
  expect(() => readProbeAccounts(join(folder, 'none'))).toThrow('there is no file');
});
