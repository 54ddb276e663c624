/** The key that the agent seals secrets with: 32 random bytes in a file of its home, made once. */
import { join } from 'node:path';
import { ConfigError } from '#shared/runtime/config.ts';
import { readOrCreatePrivateFile } from '#shared/runtime/files.ts';
import type { Random } from '#shared/runtime/random.ts';

const KEY_FILE = 'secret.key';
const KEY_BYTES = 32;

/**
 * Reads the key, making it first where there is none. A kill in between leaves the whole file or none.
 * Throws when others may read it, or when it holds something else: what was sealed would be lost unnoticed.
 */
export function openSecretKey(home: string, random: Random): Uint8Array {
  const path = join(home, KEY_FILE);
  const key = readOrCreatePrivateFile(path, () => random.bytes(KEY_BYTES), random);
  if (key.length === KEY_BYTES) return key;
  throw new ConfigError(
    `${path} does not hold a key of ${KEY_BYTES} bytes: put back the one it had`,
  );
}
