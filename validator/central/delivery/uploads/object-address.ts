/** Signed addresses of the embedded object store: HMAC-SHA256 over all that an upload may be. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { deriveKey } from '../../accounts/auth/derived-key.ts';
import type { Upload } from '../../platform/database/tables.ts';

export type SignedParts = Pick<Upload, 'object_key' | 'content_type' | 'size_bytes'> & {
  /** Unix seconds. */
  expires: number;
};

export type ObjectAddresses = ReturnType<typeof createObjectAddresses>;

export function createObjectAddresses({ secret }: { secret: Uint8Array }) {
  const key = deriveKey(secret, 'object-address');

  function signatureOf({ object_key, content_type, size_bytes, expires }: SignedParts): Buffer {
    const text = ['PUT', object_key, content_type, size_bytes, expires].join('\n');
    return createHmac('sha256', key).update(text).digest();
  }

  return {
    /** Path and query below our origin. */
    pathOf(parts: SignedParts): string {
      const signature = signatureOf(parts).toString('base64url');
      return `/objects/${parts.object_key}?expires=${parts.expires}&signature=${signature}`;
    },

    /** Whether `signature` was made by `pathOf` for these very parts. */
    isSigned(parts: SignedParts, signature: string): boolean {
      const given = Buffer.from(signature, 'base64url');
      const expected = signatureOf(parts);
      return given.length === expected.length && timingSafeEqual(given, expected);
    },
  };
}
