/** Mailed tokens: single-use, expiring, stored as hashes and bound to the address to which they were sent. */

import { createHmac } from 'node:crypto';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { type Random, randomToken } from '#shared/runtime/random.ts';
import { sha256Hex } from '#shared/signing/signed-request.ts';
import type { Account, Db } from '../../platform/database/tables.ts';
import { deriveKey } from '../auth/derived-key.ts';
import {
  type AccountToken,
  deleteAccountTokens,
  deleteExpiredTokens,
  findAccountToken,
  insertAccountToken,
  type TokenPurpose,
  useAccountToken,
} from './account-token.store.ts';

const HOUR_MS = 3_600_000;
const TOKEN_BYTES = 32;

export const TOKEN_LIFETIMES_MS: Record<TokenPurpose, number> = {
  'verify-email': 24 * HOUR_MS,
  'reset-password': HOUR_MS,
};
const ALL = ['verify-email', 'reset-password'] as const satisfies TokenPurpose[];

export type AccountTokens = ReturnType<typeof createAccountTokens>;

export function createAccountTokens({ clock, random }: { clock: Clock; random: Random }) {
  function isLive(token: AccountToken | undefined): token is AccountToken {
    return token !== undefined && token.expires_at > clock.now();
  }

  return {
    /** Returns a new token to be mailed to the account's current address. */
    async issue(tx: Db, account: Account, purpose: TokenPurpose): Promise<string> {
      const nowMs = clock.now();
      const token = randomToken(random, TOKEN_BYTES);
      await insertAccountToken(tx, {
        token_hash: sha256Hex(token),
        account_id: account.id,
        purpose,
        email_norm: account.email_norm,
        created_at: nowMs,
        expires_at: nowMs + TOKEN_LIFETIMES_MS[purpose],
      });
      return token;
    },

    /** Throws `bad_request` for an unusable token. Does not use up the token. */
    async requireLive(db: Db, purpose: TokenPurpose, token: string): Promise<void> {
      if (!isLive(await findAccountToken(db, purpose, sha256Hex(token)))) throw unusable();
    },

    /** Deletes a token and returns it, so that it is used only once. Throws `bad_request` if the token is unusable. */
    async use(tx: Db, purpose: TokenPurpose, token: string): Promise<AccountToken> {
      const used = await useAccountToken(tx, purpose, sha256Hex(token));
      if (isLive(used)) return used;
      throw unusable();
    },

    /** Deletes the tokens that were mailed before a change of password or address. */
    endAll: (tx: Db, accountId: string, purposes: readonly TokenPurpose[] = ALL) =>
      deleteAccountTokens(tx, accountId, purposes),

    sweep: (db: Db) => deleteExpiredTokens(db, clock.now()),
  };
}

/** Error for a token that is unknown, used or expired. */
export function unusable(): ApiError {
  return new ApiError('bad_request', 'The token is unknown, used or expired', {
    hint: 'Request a new mail and use its token.',
  });
}

export type AddressHash = (text: string) => string;

/**
 * Returns a keyed hash (HMAC-SHA256, hex) of addresses and tokens for use in database keys: equal texts have equal
 * hashes, but the text cannot be recovered without the deployment's secret.
 */
export function createAddressHash({ secret }: { secret: Uint8Array }): AddressHash {
  const key = deriveKey(secret, 'email-hash');
  return (text) => createHmac('sha256', key).update(text).digest('hex');
}
