/** The key with which the agent encrypts secrets at rest: 32 random bytes in a file of the agent's home. */
import { join } from 'node:path';
import { ConfigError } from '#shared/runtime/config.ts';
import { isBlank, readOrCreatePrivateFile } from '#shared/runtime/files.ts';
import type { Random } from '#shared/runtime/random.ts';

const KEY_FILE = 'secret.key';
const KEY_BYTES = 32;

/**
 * Reads the key file and creates it if it does not exist. The file is written atomically. Throws if other users can
 * read it or if it has no valid key: with another key, the secrets in the store could not be decrypted.
 */
export function openSecretKey(home: string, random: Random): Uint8Array {
  const path = join(home, KEY_FILE);
  const key = readOrCreatePrivateFile(path, () => random.bytes(KEY_BYTES), random);
  if (key.length === KEY_BYTES && !isBlank(key)) return key;
  throw new ConfigError(
    `${path} is not a key of ${KEY_BYTES} random bytes: restore the original file`,
  );
}
