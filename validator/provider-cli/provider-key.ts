/** The provider's signing key in the provider's folder: a seed file, or a key file encrypted with a passphrase. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createPrivateFile } from '#shared/runtime/files.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { LocalSigner } from '#shared/signing/sr25519.ts';
import {
  type KeyLocation,
  openKey,
  readKeyFile,
  readPrivateText,
  readSeedFile,
  SEED_BYTES,
  writeKeyFile,
} from '../keys/key-file.ts';
import { ProviderError } from './problem.ts';

/** `passphraseFile` encrypts a new key, or opens an encrypted one. */
export type KeyOptions = { home: string; passphraseFile: string | undefined };

export type KeyReport = { hotkey: string; file: string; encrypted: boolean; created: boolean };

/** Imports the key in the file `from`; without `from`, creates a key if there is none. */
export async function provideKey(
  options: KeyOptions,
  from: string | undefined,
  random: Random,
): Promise<KeyReport> {
  const present = fileIn(options.home);
  if (present !== null && from !== undefined) {
    throw new ProviderError(
      'key_exists',
      `There is a key already: ${present}`,
      'Set PROVIDER_HOME to another folder for another key. A key is never replaced.',
    );
  }
  if (present === null) await storeKey(options, from, random);
  const { hotkey } = await openProviderKey(options);
  const file = fileIn(options.home) ?? '';
  return { hotkey, file, encrypted: file.endsWith(ENCRYPTED), created: present === null };
}

/** Rejects with ProviderError if there is no key, and with ConfigError if the key cannot be opened. */
export async function openProviderKey({ home, passphraseFile }: KeyOptions): Promise<LocalSigner> {
  const path = fileIn(home);
  if (path === null) {
    const hint = 'Create or import it: npm run provider -- key --help';
    throw new ProviderError('not_logged_in', `There is no key in ${home}`, hint);
  }
  const isEncrypted = path.endsWith(ENCRYPTED);
  if (isEncrypted && passphraseFile === undefined) {
    const hint = 'Add --passphrase-file FILE; the file has mode 0600.';
    throw new ProviderError('usage', `The key ${path} is encrypted`, hint);
  }
  const location: KeyLocation =
    isEncrypted && passphraseFile !== undefined
      ? { kind: 'key-file', path, passphraseFile }
      : { kind: 'seed', path };
  return openKey(location, null);
}

const SEED = 'hotkey.seed';
const ENCRYPTED = 'hotkey.json';

function fileIn(home: string): string | null {
  return [SEED, ENCRYPTED].map((name) => join(home, name)).find(existsSync) ?? null;
}

async function storeKey(
  { home, passphraseFile }: KeyOptions,
  from: string | undefined,
  random: Random,
): Promise<void> {
  const passphrase = passphraseFile === undefined ? null : readPrivateText(passphraseFile);
  const imported = from === undefined ? null : readPrivateText(from);
  if (from !== undefined && imported?.startsWith('{') === true) {
    if (passphrase === null) {
      const hint = 'Add --passphrase-file FILE; the file has mode 0600.';
      throw new ProviderError('usage', `${from} is an encrypted key file`, hint);
    }
    // Rejects a key that could not be opened later.
    await readKeyFile(from, passphrase);
    createPrivateFile(join(home, ENCRYPTED), `${imported}\n`, random);
    return;
  }
  const seed = from === undefined ? random.bytes(SEED_BYTES) : readSeedFile(from);
  if (passphrase !== null) {
    await writeKeyFile(join(home, ENCRYPTED), seed, passphrase, random);
    return;
  }
  createPrivateFile(join(home, SEED), `${Buffer.from(seed).toString('hex')}\n`, random);
}
