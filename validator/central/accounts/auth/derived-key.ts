/**
 * Derives one key per purpose from the deployment's secret, so that a leaked key does not expose the keys of other
 * purposes.
 */
import { hkdfSync } from 'node:crypto';

/** Never rename a purpose: data sealed with its key would be lost. */
export type KeyPurpose =
  | 'session-token'
  | 'api-key-sealing'
  | 'notebook-token'
  | 'mail-sealing'
  | 'chat-link-sealing'
  | 'renter-reference'
  | 'email-hash'
  | 'object-address'
  | 'docker-credential-sealing'
  | 'pod-secret-sealing'
  | 'environment-sealing'
  | 'stream-ticket-sealing'
  | 'backup-repository'
  | 'backup-repository-sealing'
  | 'volume-repository-sealing'
  | 'webhook-secret-sealing';

const KEY_BYTES = 32;

/** Returns 32 bytes (HKDF-SHA256). Throws RangeError if the secret has fewer than 32 bytes. */
export function deriveKey(secret: Uint8Array, purpose: KeyPurpose): Uint8Array {
  if (secret.length < KEY_BYTES)
    throw new RangeError(`the secret must have at least ${KEY_BYTES} bytes`);
  return new Uint8Array(hkdfSync('sha256', secret, '', `podwright/${purpose}`, KEY_BYTES));
}
