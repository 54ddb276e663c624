/** How two sides find out that they mean the same SSH keys without sending them. Pure. */
import { createHash } from 'node:crypto';

/** Equal for equal lists, order included. */
export function sshKeysHash(publicKeys: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(publicKeys)).digest('hex');
}
