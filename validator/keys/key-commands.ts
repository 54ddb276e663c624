/** What `npm run validator` does with keys: opens its own, encrypts one, signs a key set. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { Clock } from '#shared/runtime/clock.ts';
import { ConfigError } from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { fileProblem } from '#shared/runtime/files.ts';
import type { Random } from '#shared/runtime/random.ts';
import { signAccountProof } from '#shared/signing/account-proof.ts';
import { Hotkey } from '#shared/signing/hotkey.ts';
import { KeySet, signKeySet } from '#shared/signing/key-set.ts';
import type { ValidatorConfig } from '../config.ts';
import {
  type KeyLocation,
  openKey,
  readPrivateText,
  readSeedFile,
  writeKeyFile,
} from './key-file.ts';
import { type TrustedHotkey, trustedHotkeys } from './trusted-hotkeys.ts';

type KeyConfig = Pick<
  ValidatorConfig,
  'VALIDATOR_HOME' | 'VALIDATOR_SEED_FILE' | 'VALIDATOR_KEY_FILE' | 'VALIDATOR_KEY_PASSPHRASE_FILE'
>;

/** Where the validator's own key lies. */
export function ownKeyLocation(config: KeyConfig): KeyLocation {
  const { VALIDATOR_KEY_FILE: path, VALIDATOR_KEY_PASSPHRASE_FILE: passphraseFile } = config;
  if (path !== undefined && passphraseFile !== undefined) {
    return { kind: 'key-file', path, passphraseFile };
  }
  const seedFile = config.VALIDATOR_SEED_FILE ?? join(config.VALIDATOR_HOME, 'hotkey.seed');
  return { kind: 'seed', path: seedFile };
}

/**
 * Whose signatures under evidence count: the keys that are named, at any time, or else the own one and those of its
 * key set. Rejects with ConfigError for what is no hotkey, and where there is no own key to be read.
 */
export async function evidenceKeys(
  named: readonly string[],
  configOf: () => KeyConfig & Pick<ValidatorConfig, 'VALIDATOR_KEY_SET'>,
): Promise<TrustedHotkey[]> {
  if (named.length > 0) return named.map((text) => ({ hotkey: namedHotkey(text) }));
  const config = configOf();
  const signer = await openKey(ownKeyLocation(config), null).catch((cause: unknown) => {
    const why = `our own key, by whose signature evidence is believed, cannot be read: ${messageOf(cause)}`;
    throw new ConfigError(`${why}; name its ss58 with --hotkey, or set its variables`, { cause });
  });
  return trustedHotkeys(signer.hotkey, config.VALIDATOR_KEY_SET);
}

function namedHotkey(text: string): Hotkey {
  const parsed = Hotkey.safeParse(text);
  if (!parsed.success) throw new ConfigError(`--hotkey ${text}: no ss58 of a key`);
  return parsed.data;
}

/** `encrypt-key SEED_FILE KEY_FILE PASSPHRASE_FILE`: its answer names the hotkey. */
export async function encryptSeed(words: readonly string[], random: Random): Promise<string> {
  const [seedFile, keyFile, passphraseFile, ...rest] = words;
  if (seedFile === undefined || keyFile === undefined || passphraseFile === undefined) {
    throw new ConfigError('encrypt-key takes SEED_FILE KEY_FILE PASSPHRASE_FILE; see --help');
  }
  if (rest.length > 0) throw new ConfigError(`encrypt-key takes no ${rest.join(' ')}`);
  const passphrase = readPrivateText(passphraseFile);
  const { hotkey } = await writeKeyFile(keyFile, readSeedFile(seedFile), passphrase, random);
  return `${keyFile} holds ${hotkey}; once it has been tried, destroy ${seedFile}\n`;
}

/** `hotkey`: the ss58 of the key there, made where there is none, for others to name before its process first runs. */
export async function showHotkey(
  words: readonly string[],
  place: KeyLocation,
  random: Random,
): Promise<string> {
  if (words.length > 0) throw new ConfigError(`hotkey takes no ${words.join(' ')}; see --help`);
  const { hotkey } = await openKey(place, random);
  return `${hotkey}\n`;
}

/** `sign-key-set FILE`: the signed set, to be given to agents as AGENT_KEY_SET. */
export async function signKeySetFile(words: readonly string[], config: KeyConfig): Promise<string> {
  const [path, ...rest] = words;
  if (path === undefined || rest.length > 0) {
    throw new ConfigError('sign-key-set takes one FILE; see --help');
  }
  const keySet = parsedSet(path);
  return `${JSON.stringify(signKeySet(keySet, await openKey(ownKeyLocation(config), null)), null, 2)}\n`;
}

/** `prove-account ACCOUNT`: the `validator_proof` that PUT /users/me of that account takes within five minutes. */
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
    ({ path: at, message }) => `${at.join('.') || 'the whole'}: ${message}`,
  );
  throw new ConfigError(`${path} is no key set:\n  ${problems.join('\n  ')}`);
}
