/** The key set that a provider was given by its validator: a JSON file, read once at the agent's start. */
import { readFileSync, statSync } from 'node:fs';
import { ConfigError } from '#shared/config.ts';
import { messageOf } from '#shared/errors.ts';
import { SignedKeySet, trustedBy } from '#shared/signing/key-set.ts';
import type { TrustedKey } from '#shared/signing/request-verifier.ts';

const MAX_BYTES = 256 * 1024;

/** Who may command: `roots`, changed by the set in `path` where there is one. Throws ConfigError that says what is wrong. */
export function trustedKeysFrom(
  roots: readonly TrustedKey[],
  path: string | undefined,
): readonly TrustedKey[] {
  if (path === undefined) return roots;
  try {
    return trustedBy(roots, readSet(path));
  } catch (cause) {
    throw new ConfigError(`AGENT_KEY_SET ${path}: ${messageOf(cause)}`, { cause });
  }
}

function readSet(path: string): SignedKeySet {
  const file = statSync(path);
  // A pipe would keep the reader for ever.
  if (!file.isFile()) throw new Error('not a file');
  if (file.size > MAX_BYTES) throw new Error(`larger than ${MAX_BYTES} bytes`);
  const parsed = SignedKeySet.safeParse(JSON.parse(readFileSync(path, 'utf8')));
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(
    ({ path: at, message }) => `${at.join('.') || 'the whole'}: ${message}`,
  );
  throw new Error(problems.join('; '));
}
