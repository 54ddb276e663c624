/** Creates API keys, hashes them for lookup and seals them so that the owner can read them again. */
import { hash } from 'node:crypto';
import { type Random, randomToken } from '#shared/runtime/random.ts';
import { createSealing } from '#shared/signing/sealing.ts';
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

export type ApiKeySecrets = ReturnType<typeof createApiKeySecrets>;

/** `secret` is the deployment's secret; sealed keys can only be opened with it. */
export function createApiKeySecrets(deps: { random: Random; secret: Uint8Array }) {
  const { random } = deps;
  const sealing = createSealing({ key: deriveKey(deps.secret, 'api-key-sealing'), random });

  return {
    create(): NewApiKey {
      const key = `${API_KEY_PREFIX}${randomToken(random, SECRET_BYTES)}`;
      const hash = apiKeyHash(key);
      return {
        key,
        prefix: key.slice(0, SHOWN_FIRST),
        suffix: key.slice(-SHOWN_LAST),
        hash,
        // The seal is bound to the hash, so a sealed key that is copied to another row cannot be opened.
        sealed: sealing.seal(key, hash),
      };
    },

    /** Returns the key. Throws if the key was sealed with another secret or for another row. */
    open: (sealed: string, hash: string): string => sealing.open(sealed, hash),
  };
}

/**
 * Hash by which a key is found. Plain SHA-256 suffices for 256 random bits, and an index of hashes leaks no timing that
 * would help an attacker to guess a key.
 */
export function apiKeyHash(key: string): string {
  return hash('sha256', key);
}
