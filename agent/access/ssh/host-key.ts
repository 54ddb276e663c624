/**
 * The SSH gateway's host key, a file in the agent's home. The key outlives pods and reinstallations. Otherwise SSH
 * clients would warn of a changed key on a port that an earlier pod used.
 */
import { ConfigError } from '#shared/runtime/config.ts';
import { readOrCreatePrivateFile } from '#shared/runtime/files.ts';
import type { Random } from '#shared/runtime/random.ts';
import { createSshKeyPair, publicKeyOf } from '#shared/signing/openssh-key.ts';

/**
 * Returns the key in OpenSSH's file format, and creates it with the first call. Throws ConfigError for a file that other
 * users may read or that contains no such key.
 */
export function openHostKey(path: string, random: Random): string {
  const make = () => Buffer.from(createSshKeyPair(random, 'podwright').privateKeyPem);
  const pem = Buffer.from(readOrCreatePrivateFile(path, make, random)).toString();
  if (publicKeyOf(pem) !== null) return pem;
  throw new ConfigError(
    `${path} contains no ed25519 key in OpenSSH's format: restore it from a backup of the agent's home, or delete it. ` +
      'After a deletion, SSH clients warn of a changed host key.',
  );
}
