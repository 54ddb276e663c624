/** Reads the key set that a validator issued: a JSON file, read once at the agent's start. */
import { ConfigError } from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { readSignedKeySet, trustedKeys } from '#shared/signing/key-set.ts';
import type { TrustedKey } from '#shared/signing/request-verifier.ts';

/** Returns the keys that may call the agent: `roots`, updated by the key set in `path` if there is one. Throws ConfigError. */
export function trustedKeysFrom(
  roots: readonly TrustedKey[],
  path: string | undefined,
): readonly TrustedKey[] {
  if (path === undefined) return roots;
  try {
    return trustedKeys(roots, readSignedKeySet(path));
  } catch (cause) {
    throw new ConfigError(`AGENT_KEY_SET ${path}: ${messageOf(cause)}`, { cause });
  }
}
