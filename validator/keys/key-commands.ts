/** The key commands of `npm run validator`: hotkey, encrypt-key, sign-key-set and prove-account. */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import type { Clock } from '#shared/runtime/clock.ts';
import { ConfigError } from '#shared/runtime/config.ts';
import { fileProblem } from '#shared/runtime/files.ts';
import type { Random } from '#shared/runtime/random.ts';
import { signAccountProof } from '#shared/signing/account-proof.ts';
import { KeySet, signKeySet } from '#shared/signing/key-set.ts';
import {
  type KeyLocation,
  openKey,
  readPrivateText,
  readSeedFile,
  writeKeyFile,
} from './key-file.ts';
import { type KeyConfig, ownKeyLocation } from './own-key.ts';

/**
 * `encrypt-key SEED_FILE KEY_FILE PASSPHRASE_FILE`: writes an encrypted key file and returns a text with the hotkey.
 */
export async function encryptSeed(words: readonly string[], random: Random): Promise<string> {
  const [seedFile, keyFile, passphraseFile, ...rest] = words;
  if (seedFile === undefined || keyFile === undefined || passphraseFile === undefined) {
    throw new ConfigError('encrypt-key takes SEED_FILE KEY_FILE PASSPHRASE_FILE; see --help');
  }
  if (rest.length > 0) throw new ConfigError(`encrypt-key does not take ${rest.join(' ')}`);
  const passphrase = readPrivateText(passphraseFile);
  const { hotkey } = await writeKeyFile(keyFile, readSeedFile(seedFile), passphrase, random);
  return `${keyFile} contains the key of ${hotkey}; destroy ${seedFile} once the key file works\n`;
}

/**
 * `hotkey`: prints the ss58 of the key and creates a missing key, so that agents and the central API can be configured
 * before the first start.
 */
export async function showHotkey(
  words: readonly string[],
  location: KeyLocation,
  random: Random,
): Promise<string> {
  if (words.length > 0)
    throw new ConfigError(`hotkey does not take ${words.join(' ')}; see --help`);
  const { hotkey } = await openKey(location, random);
  return `${hotkey}\n`;
}

/** `sign-key-set FILE`: prints the signed set for AGENT_KEY_SET of agents. */
export async function signKeySetFile(words: readonly string[], config: KeyConfig): Promise<string> {
  const [path, ...rest] = words;
  if (path === undefined || rest.length > 0) {
    throw new ConfigError('sign-key-set takes one FILE; see --help');
  }
  const keySet = parsedSet(path);
  return `${JSON.stringify(signKeySet(keySet, await openKey(ownKeyLocation(config), null)), null, 2)}\n`;
}

/** `prove-account ACCOUNT`: prints the `validator_proof` for PUT /users/me of that account; valid for five minutes. */
export async function proveAccountOf(
  words: readonly string[],
  config: KeyConfig,
  clock: Pick<Clock, 'now'>,
): Promise<string> {
  const [accountId, ...rest] = words;
  if (rest.length > 0 || !z.uuid().safeParse(accountId).success || accountId === undefined) {
    throw new ConfigError('prove-account takes the id of one account; see --help');
  }
  const signer = await openKey(ownKeyLocation(config), null);
  const proof = await signAccountProof(signer, accountId, clock.now());
  return `${JSON.stringify({ validator_proof: proof })}\n`;
}

function parsedSet(path: string): KeySet {
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(path, 'utf8'));
  } catch (cause) {
    throw new ConfigError(fileProblem(path, cause), { cause });
  }
  const parsed = KeySet.safeParse(content);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(
    ({ path: at, message }) => `${at.join('.') || 'file'}: ${message}`,
  );
  throw new ConfigError(`${path} is not a key set:\n  ${problems.join('\n  ')}`);
}
