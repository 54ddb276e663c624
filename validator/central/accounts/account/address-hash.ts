/** Addresses and tokens as keys of rows: equal ones meet, and none can be read back without the deployment's secret. */
import { createHmac } from 'node:crypto';
import { deriveKey } from '../auth/derived-key.ts';

export type AddressHash = (text: string) => string;

/** HMAC-SHA256 hex. */
export function createAddressHash({ secret }: { secret: Uint8Array }): AddressHash {
  const key = deriveKey(secret, 'email-hash');
  return (text) => createHmac('sha256', key).update(text).digest('hex');
}
