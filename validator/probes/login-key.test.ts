import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { systemRandom } from '#shared/runtime/random.ts';
import { parsePublicKey } from '../central/accounts/ssh-keys/public-key.ts';
import { createLoginKey } from './login-key.ts';

/** Returns the public key that OpenSSH derives from a private key. */
function derivedKey(privateKeyPem: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-key-'));
  try {
    writeFileSync(join(folder, 'key'), privateKeyPem, { mode: 0o600 });
    const line = execFileSync('ssh-keygen', ['-y', '-P', '', '-f', join(folder, 'key')]);
    return String(line).split(' ').slice(0, 2).join(' ').trim();
  } finally {
    rmSync(folder, { recursive: true });
  }
}

it.each([
  ['ed25519', 'me@here'],
  ['rsa', 'me@laptop'],
  ['ecdsa', ''],
] as const)(
  'creates %s keys that the central API accepts and OpenSSH reads',
  async (type, comment) => {
    const plan = { type, bits: 2_048, comment };
    const { publicKey, privateKeyPem } = await createLoginKey(systemRandom, plan);
    expect(parsePublicKey(publicKey)).toMatchObject({ key: { text: publicKey } });
    expect(derivedKey(privateKeyPem)).toBe(publicKey.split(' ').slice(0, 2).join(' '));
  },
);
