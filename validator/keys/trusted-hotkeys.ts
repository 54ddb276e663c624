/** Whose signatures under evidence count, and when: the validator's own key, and those that it changed from or to. */
import { ConfigError } from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import { readSignedKeySet, trustedKeys } from '#shared/signing/key-set.ts';
import { isKeyValidAt, type TrustedKey } from '#shared/signing/request-verifier.ts';

/** Without a window a key counts at any time. */
export type TrustedHotkey = Pick<TrustedKey, 'hotkey' | 'notBeforeMs' | 'notAfterMs'>;

/** Whether a signature of that key and time counts. */
export function isTrustedAt(keys: readonly TrustedHotkey[], hotkey: Hotkey, atMs: number): boolean {
  return keys.some((key) => key.hotkey === hotkey && isKeyValidAt(key, atMs));
}

/**
 * The own key, and with a key set (the one that agents are given) those that it names, in their times. Throws
 * ConfigError for a set that has nothing to do with the own key: everybody can sign one.
 */
export function trustedHotkeys(own: Hotkey, keySetFile: string | undefined): TrustedHotkey[] {
  if (keySetFile === undefined) return [{ hotkey: own }];
  try {
    const signed = readSignedKeySet(keySetFile);
    const holdsLease = signed.ss58 === own || signed.key_set.keys.some(({ ss58 }) => ss58 === own);
    if (!holdsLease) throw new Error(`it neither names our key ${own} nor is signed with it`);
    const roots = [...new Set([own, signed.ss58])];
    return trustedKeys(
      roots.map((hotkey) => ({ hotkey, roles: ['validator-control'] })),
      signed,
    );
  } catch (cause) {
    throw new ConfigError(`VALIDATOR_KEY_SET ${keySetFile}: ${messageOf(cause)}`, { cause });
  }
}
