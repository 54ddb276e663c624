/** The key set that a provider was given by its validator: a JSON file, read once at the agent's start. */
import { ConfigError } from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { readSignedKeySet, trustedKeys } from '#shared/signing/key-set.ts';
import type { TrustedKey } from '#shared/signing/request-verifier.ts';

/** Who may command: `roots`, changed by the set in `path` where there is one. Throws ConfigError that says what is wrong. */
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
