/** API keys: making, recognising by hash, keeping sealed so that the owner can read them again (contract 12.8). */
import { createCipheriv, createDecipheriv, createHash } from 'node:crypto';
import { type Random, randomToken } from '#shared/random.ts';
import { deriveKey } from './derived-key.ts';

export type NewApiKey = {
  /** `sk_` + 43 base64url characters. */
  key: string;
  prefix: string;
  suffix: string;
  hash: string;
  sealed: string;
};

export const API_KEY_PREFIX = 'sk_';
const SECRET_BYTES = 32;
const SHOWN_FIRST = 10;
const SHOWN_LAST = 5;
const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

export type ApiKeySecrets = ReturnType<typeof createApiKeySecrets>;

/** `secret` is the deployment's; without it sealed keys stay closed. */
export function createApiKeySecrets(deps: { random: Random; secret: Uint8Array }) {
  const { random } = deps;
  const sealingKey = deriveKey(deps.secret, 'api-key-sealing');

  /** The hash is authenticated along, so that a sealed key moved to another row does not open there. */
  function seal(key: string, hash: string): string {
    const nonce = random.bytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, sealingKey, nonce).setAAD(Buffer.from(hash));
    const sealed = Buffer.concat([cipher.update(key, 'utf8'), cipher.final()]);
    return Buffer.concat([nonce, sealed, cipher.getAuthTag()]).toString('base64url');
  }

  return {
    create(): NewApiKey {
      const key = `${API_KEY_PREFIX}${randomToken(random, SECRET_BYTES)}`;
      const hash = apiKeyHash(key);
      return {
        key,
        prefix: key.slice(0, SHOWN_FIRST),
        suffix: key.slice(-SHOWN_LAST),
        hash,
        sealed: seal(key, hash),
      };
    },

    /** The key itself. Throws when it was sealed under another secret or for another row. */
    open(sealed: string, hash: string): string {
      const bytes = Buffer.from(sealed, 'base64url');
      const tagAt = bytes.length - TAG_BYTES;
      const decipher = createDecipheriv(CIPHER, sealingKey, bytes.subarray(0, NONCE_BYTES))
        .setAAD(Buffer.from(hash))
        .setAuthTag(bytes.subarray(tagAt));
      return (
        decipher.update(bytes.subarray(NONCE_BYTES, tagAt), undefined, 'utf8') +
        decipher.final('utf8')
      );
    },
  };
}

/**
 * What a key is looked up by. Plain SHA-256 is enough for 256 random bits, and an index over hashes leaks
 * no timing that would help to guess a key.
 */
export function apiKeyHash(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}
