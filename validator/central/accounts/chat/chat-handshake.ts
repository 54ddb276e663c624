/** OAuth 2 with a chat platform, for accounts and providers: single-use state, PKCE. */
import { createHash } from 'node:crypto';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { type Random, randomToken } from '#shared/runtime/random.ts';
import { createSealing } from '#shared/signing/sealing.ts';
import { sha256Hex } from '#shared/signing/signed-request.ts';
import type { Database } from '../../platform/database/tables.ts';
import { lockRow } from '../../platform/database/transactions.ts';
import type { ChatPlatform, ChatUser } from '../../platform/ports.ts';
import { deriveKey } from '../auth/derived-key.ts';
import type { ChatCallbackQuery } from './chat.schemas.ts';
import { countLinkStates, insertLinkState, redeemLinkState } from './chat.store.ts';

const STATE_LIFETIME_MS = 600_000;
const STATE_BYTES = 32;
const VERIFIER_BYTES = 32;
const MAX_OPEN_LINKS = 10;

export type ChatHandshakeDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  secret: Uint8Array;
  platform: ChatPlatform | null;
  owners: 'accounts' | 'providers';
  /** Route that starts a link; hints name it. */
  beginsAt: string;
};

export type ChatHandshake = ReturnType<typeof createChatHandshake>;

export function createChatHandshake(deps: ChatHandshakeDeps) {
  const { db, clock, random, secret, platform, owners, beginsAt } = deps;
  const sealing = createSealing({ key: deriveKey(secret, 'chat-link-sealing'), random });

  /** Redeems the state of a link that this owner began and returns the link's PKCE verifier. */
  async function redeem(ownerId: string, state: string): Promise<string> {
    const stateHash = sha256Hex(state);
    const begun = await redeemLinkState(db, ownerId, stateHash);
    if (begun !== undefined && begun.expires_at > clock.now()) {
      return sealing.open(begun.verifier_sealed, stateHash);
    }
    throw new ApiError(
      'bad_request',
      'The state is unknown, used, expired or belongs to another account',
      {
        hint: `Begin again with ${beginsAt}.`,
      },
    );
  }

  return {
    /**
     * Returns the URL at which the user authorizes the link; null if no platform is configured. Throws 429 if ten links
     * are unfinished.
     */
    async begin(ownerId: string): Promise<{ authorization_url: string | null }> {
      if (platform === null) return { authorization_url: null };
      const state = randomToken(random, STATE_BYTES);
      const verifier = randomToken(random, VERIFIER_BYTES);
      const stateHash = sha256Hex(state);
      const nowMs = clock.now();
      const begun = {
        state_hash: stateHash,
        owner_id: ownerId,
        verifier_sealed: sealing.seal(verifier, stateHash),
        created_at: nowMs,
        expires_at: nowMs + STATE_LIFETIME_MS,
      };
      await db.transaction().execute(async (tx) => {
        await lockRow(tx, owners, ownerId);
        await insertLinkState(tx, begun, nowMs);
        if ((await countLinkStates(tx, ownerId)) > MAX_OPEN_LINKS) {
          throw new ApiError('rate_limited', 'Too many links were started and not finished', {
            headers: { 'Retry-After': '60' },
          });
        }
      });
      const codeChallenge = createHash('sha256').update(verifier).digest('base64url');
      return { authorization_url: platform.authorizationUrl({ state, codeChallenge }) };
    },

    /**
     * Returns the chat user after the redirect; null if the user denied access or no platform is configured. Does not
     * store the platform's tokens. Throws `bad_request` or `upstream_unavailable`.
     */
    async identify(
      ownerId: string,
      { code, state, error }: ChatCallbackQuery,
    ): Promise<ChatUser | null> {
      if (platform === null) return null;
      if (state === undefined) throw new ApiError('bad_request', 'The state is missing');
      const verifier = await redeem(ownerId, state);
      if (error !== undefined) return null;
      if (code === undefined) throw new ApiError('bad_request', 'The code is missing');
      return platform.identify({ code, verifier });
    },
  };
}
