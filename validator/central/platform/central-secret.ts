/** The deployment's own secret: it signs sessions and seals API keys, in a file that nobody else may read. */
import { ConfigError } from '#shared/runtime/config.ts';
import { readOrMakePrivateFile } from '#shared/runtime/files.ts';
import type { Random } from '#shared/runtime/random.ts';

const BYTES = 32;

/** Made where there is none. Throws ConfigError for a file that others may read, that we may not, or that holds less. */
export function centralSecret(path: string, random: Random): Uint8Array {
  const secret = readOrMakePrivateFile(path, () => random.bytes(BYTES), random);
  if (secret.length >= BYTES) return secret;
  throw new ConfigError(
    `${path} holds ${secret.length} bytes of the ${BYTES} of a secret: put back the one it had`,
  );
}
