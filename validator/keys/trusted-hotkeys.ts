/**
 * Keys whose evidence is trusted, and the time windows of trust: the validator's own key and the keys of its signed key
 * set.
 */
import { ConfigError } from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import { readSignedKeySet, trustedKeys } from '#shared/signing/key-set.ts';
import { isKeyValidAt, type TrustedKey } from '#shared/signing/request-verifier.ts';

/** A key without a window is trusted at any time. */
export type TrustedHotkey = Pick<TrustedKey, 'hotkey' | 'notBeforeMs' | 'notAfterMs'>;

/** Returns true if a signature by `hotkey` at `atMs` is trusted. */
export function isTrustedAt(keys: readonly TrustedHotkey[], hotkey: Hotkey, atMs: number): boolean {
  return keys.some((key) => key.hotkey === hotkey && isKeyValidAt(key, atMs));
}

/**
 * Returns the validator's own key and, with a key set, the keys of the set within their windows. Throws ConfigError for
 * a set that neither contains the validator's own key nor is signed with it, because anyone can sign a set.
 */
export function trustedHotkeys(own: Hotkey, keySetFile: string | undefined): TrustedHotkey[] {
  if (keySetFile === undefined) return [{ hotkey: own }];
  try {
    const signed = readSignedKeySet(keySetFile);
    const isOurs = signed.ss58 === own || signed.key_set.keys.some(({ ss58 }) => ss58 === own);
    if (!isOurs) throw new Error(`it neither names our key ${own} nor is signed with it`);
    const roots = [...new Set([own, signed.ss58])];
    return trustedKeys(
      roots.map((hotkey) => ({ hotkey, roles: ['validator-control'] })),
      signed,
    );
  } catch (cause) {
    throw new ConfigError(`VALIDATOR_KEY_SET ${keySetFile}: ${messageOf(cause)}`, { cause });
  }
}
