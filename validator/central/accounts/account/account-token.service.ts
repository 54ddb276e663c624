/** Tokens that are mailed: single use, expiring, stored as hashes, bound to the address they were sent to. */

import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { type Random, randomToken } from '#shared/runtime/random.ts';
import { sha256Hex } from '#shared/signing/signed-request.ts';
import type { Account, Db } from '../../platform/database/tables.ts';
import {
  type AccountToken,
  deleteAccountTokens,
  deleteExpiredTokens,
  findAccountToken,
  insertAccountToken,
  type TokenPurpose,
  takeAccountToken,
} from './account-token.store.ts';

const HOUR_MS = 3_600_000;
const TOKEN_BYTES = 32;

/** How long each is good for. */
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
    /** A new token, to be mailed to the account's present address. */
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

    /** Throws `bad_request` for a token that could not be used now; uses nothing. */
    async requireLive(db: Db, purpose: TokenPurpose, token: string): Promise<void> {
      if (!isLive(await findAccountToken(db, purpose, sha256Hex(token)))) throw unusable();
    },

    /** Uses a token: nobody else can. Throws `bad_request`. */
    async use(tx: Db, purpose: TokenPurpose, token: string): Promise<AccountToken> {
      const taken = await takeAccountToken(tx, purpose, sha256Hex(token));
      if (isLive(taken)) return taken;
      throw unusable();
    },

    /** After a change of password or address: what was mailed before opens nothing any more. */
    endAll: (tx: Db, accountId: string, purposes: readonly TokenPurpose[] = ALL) =>
      deleteAccountTokens(tx, accountId, purposes),

    /** Removes those that ran out. */
    sweep: (db: Db) => deleteExpiredTokens(db, clock.now()),
  };
}

/** The one refusal of a token that is no good. */
export function unusable(): ApiError {
  return new ApiError('bad_request', 'The token is unknown, used or expired', {
    hint: 'Ask for a new mail and use its token.',
  });
}
