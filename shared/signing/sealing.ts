/** Encrypts secrets at rest with AES-256-GCM under the deployment's key. */
import { createCipheriv, createDecipheriv } from 'node:crypto';
import type { Random } from '../runtime/random.ts';

const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

export type Sealing = ReturnType<typeof createSealing>;

/** `key` has 32 bytes. */
export function createSealing({ key, random }: { key: Uint8Array; random: Random }) {
  return {
    /**
     * Encrypts. `place` is authenticated with the text: sealed text that is copied to another place cannot be decrypted
     * there.
     */
    seal(text: string, place: string): string {
      const nonce = random.bytes(NONCE_BYTES);
      const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(place));
      const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
      return Buffer.concat([nonce, sealed, cipher.getAuthTag()]).toString('base64url');
    },

    /** Decrypts. Throws if the text was sealed with another key, for another place, or has changed. */
    open(sealed: string, place: string): string {
      const bytes = Buffer.from(sealed, 'base64url');
      const tagAt = bytes.length - TAG_BYTES;
      const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE_BYTES))
        .setAAD(Buffer.from(place))
        .setAuthTag(bytes.subarray(tagAt));
      return (
        decipher.update(bytes.subarray(NONCE_BYTES, tagAt), undefined, 'utf8') +
        decipher.final('utf8')
      );
    },
  };
}
