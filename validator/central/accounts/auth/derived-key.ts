/** One key per purpose out of the deployment's secret, so that a leak of one tells nothing of the others. */
import { hkdfSync } from 'node:crypto';

/** What keys are derived for; a purpose's text never changes, or everything made with it is lost. */
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
  | 'stream-ticket-sealing'
  | 'backup-repository'
  | 'backup-repository-sealing'
  | 'volume-repository-sealing'
  | 'webhook-secret-sealing';

const KEY_BYTES = 32;

/** 32 bytes, the same for the same secret and purpose. */
export function deriveKey(secret: Uint8Array, purpose: KeyPurpose): Uint8Array {
  if (secret.length < KEY_BYTES) throw new RangeError(`the secret has at least ${KEY_BYTES} bytes`);
  return new Uint8Array(hkdfSync('sha256', secret, '', `podwright/${purpose}`, KEY_BYTES));
}
