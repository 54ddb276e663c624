/** The validator's own key: its location, the keys trusted because of it, and a check before a start. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError } from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { isSystemdCredential } from '#shared/runtime/secrets.ts';
import { Hotkey } from '#shared/signing/hotkey.ts';
import type { ValidatorConfig } from '../config.ts';
import { type KeyLocation, openKey } from './key-file.ts';
import { type TrustedHotkey, trustedHotkeys } from './trusted-hotkeys.ts';

export type KeyConfig = Pick<
  ValidatorConfig,
  'VALIDATOR_HOME' | 'VALIDATOR_SEED_FILE' | 'VALIDATOR_KEY_FILE' | 'VALIDATOR_KEY_PASSPHRASE_FILE'
>;

export function ownKeyLocation(config: KeyConfig): KeyLocation {
  const { VALIDATOR_KEY_FILE: path, VALIDATOR_KEY_PASSPHRASE_FILE: passphraseFile } = config;
  if (path !== undefined && passphraseFile !== undefined) {
    return { kind: 'key-file', path, passphraseFile };
  }
  const seedFile = config.VALIDATOR_SEED_FILE ?? join(config.VALIDATOR_HOME, 'hotkey.seed');
  return { kind: 'seed', path: seedFile };
}

/**
 * Returns the keys whose evidence is trusted: the `named` keys, without a time limit, or, if `named` is empty, the
 * validator's own key and the keys of VALIDATOR_KEY_SET. Rejects with ConfigError for an invalid hotkey, or if the
 * validator's key cannot be read.
 */
export async function evidenceKeys(
  named: readonly string[],
  configOf: () => KeyConfig & Pick<ValidatorConfig, 'VALIDATOR_KEY_SET'>,
): Promise<TrustedHotkey[]> {
  if (named.length > 0) return named.map((text) => ({ hotkey: namedHotkey(text) }));
  const config = configOf();
  const signer = await openKey(ownKeyLocation(config), null).catch((cause: unknown) => {
    const why = `the validator's own key, which signs evidence, cannot be read: ${messageOf(cause)}`;
    throw new ConfigError(`${why}; name its ss58 with --hotkey, or set its variables`, { cause });
  });
  return trustedHotkeys(signer.hotkey, config.VALIDATOR_KEY_SET);
}

function namedHotkey(text: string): Hotkey {
  const parsed = Hotkey.safeParse(text);
  if (!parsed.success) throw new ConfigError(`--hotkey ${text}: not the ss58 address of a key`);
  return parsed.data;
}

/**
 * Returns the reason for which a start would reject the key or the key set; null if it would accept both. A missing
 * seed is accepted, because the start creates it. Missing systemd credentials are accepted too, because they exist only
 * while the service runs.
 */
export async function keyProblem(
  location: KeyLocation,
  keySetFile: string | undefined,
): Promise<string | null> {
  const files =
    location.kind === 'seed' ? [location.path] : [location.path, location.passphraseFile];
  const mayBeMissing = (path: string) => location.kind === 'seed' || isSystemdCredential(path);
  if (files.some((path) => !existsSync(path) && mayBeMissing(path))) return null;
  try {
    trustedHotkeys((await openKey(location, null)).hotkey, keySetFile);
    return null;
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
}
