/** Links accounts to a chat platform: OAuth 2 with a single-use state and PKCE (specification, Account). */
import { createHash } from 'node:crypto';
import type { Clock } from '#shared/clock.ts';
import { ApiError } from '#shared/errors.ts';
import { type Random, randomToken } from '#shared/random.ts';
import { createSealing } from '#shared/sealing.ts';
import { sha256Hex } from '#shared/signing/canonical-request.ts';
import { setChatUser } from '../accounts/account.service.ts';
import { deriveKey } from '../auth/derived-key.ts';
import type { Actor } from '../auth/identity.ts';
import { lockRow } from '../db/row-lock.ts';
import type { Database, Db } from '../db/tables.ts';
import { recordEvent } from '../events/event.service.ts';
import type { ChatPlatform } from '../ports.ts';
import type { ChatCallbackQuery, ChatOAuthCallbackResponse } from './chat.schemas.ts';
import { countLinkStates, deleteLinkStates, insertLinkState, takeLinkState } from './chat.store.ts';

const STATE_LIFETIME_MS = 600_000;
const STATE_BYTES = 32;
const VERIFIER_BYTES = 32;
const MAX_OPEN_LINKS = 10;

export type ChatLinksDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  secret: Uint8Array;
  platform: ChatPlatform | null;
};

export type ChatLinks = ReturnType<typeof createChatLinks>;

export function createChatLinks({ db, clock, random, secret, platform }: ChatLinksDeps) {
  const sealing = createSealing({ key: deriveKey(secret, 'chat-link-sealing'), random });

  function required(): ChatPlatform {
    if (platform !== null) return platform;
    throw new ApiError('bad_request', 'No chat platform is set up here');
  }

  /** The verifier of a link that this account began; spent by the asking. */
  async function redeem(accountId: string, state: string): Promise<string> {
    const stateHash = sha256Hex(state);
    const begun = await takeLinkState(db, accountId, stateHash);
    if (begun !== undefined && begun.expires_at > clock.now()) {
      return sealing.open(begun.verifier_sealed, stateHash);
    }
    throw new ApiError('bad_request', 'The state is unknown, used, expired or of another account', {
      hint: 'Begin again with GET /users/me/chat/oauth-url.',
    });
  }

  function record(tx: Db, accountId: string, actor: Actor, detail: string): Promise<void> {
    return recordEvent(
      tx,
      { clock, random },
      {
        accountId,
        eventType: 'account',
        subEventType: 'account.success',
        actor,
        reason: 'user_initiated',
        payload: { pod_name: null, node: null, detail },
      },
    );
  }

  return {
    /** Where the account's owner allows the link. */
    async begin(accountId: string): Promise<{ authorization_url: string }> {
      const chat = required();
      const state = randomToken(random, STATE_BYTES);
      const verifier = randomToken(random, VERIFIER_BYTES);
      const stateHash = sha256Hex(state);
      const nowMs = clock.now();
      const begun = {
        state_hash: stateHash,
        account_id: accountId,
        verifier_sealed: sealing.seal(verifier, stateHash),
        created_at: nowMs,
        expires_at: nowMs + STATE_LIFETIME_MS,
      };
      await db.transaction().execute(async (tx) => {
        await lockRow(tx, 'accounts', accountId);
        await insertLinkState(tx, begun, nowMs);
        if ((await countLinkStates(tx, accountId)) > MAX_OPEN_LINKS) {
          throw new ApiError('rate_limited', 'Too many links were begun and not finished', {
            headers: { 'Retry-After': '60' },
          });
        }
      });
      const codeChallenge = createHash('sha256').update(verifier).digest('base64url');
      return { authorization_url: chat.authorizationUrl({ state, codeChallenge }) };
    },

    /** Null when the owner said no. The platform's tokens are used for one question and forgotten. */
    async finish(
      accountId: string,
      { code, state, error }: ChatCallbackQuery,
      actor: Actor,
    ): Promise<ChatOAuthCallbackResponse | null> {
      const chat = required();
      if (state === undefined) throw new ApiError('bad_request', 'The state is missing');
      const verifier = await redeem(accountId, state);
      if (error !== undefined) return null;
      if (code === undefined) throw new ApiError('bad_request', 'The code is missing');
      const user = await chat.identify({ code, verifier });
      await db.transaction().execute(async (tx) => {
        if (!(await setChatUser(tx, accountId, user, clock.now()))) {
          throw new ApiError('conflict', 'This chat account is linked to another account', {
            hint: 'Unlink it there first, or choose another one.',
          });
        }
        await record(tx, accountId, actor, 'chat account linked');
      });
      return { connected: true, discord_id: user.id, discord_username: user.username };
    },

    /** Also where nothing is linked. */
    async unlink(accountId: string, actor: Actor): Promise<{ success: true }> {
      await db.transaction().execute(async (tx) => {
        await setChatUser(tx, accountId, null, clock.now());
        await record(tx, accountId, actor, 'chat account unlinked');
      });
      return { success: true };
    },

    /** Forgets what an account has begun. */
    forget: (tx: Db, accountId: string) => deleteLinkStates(tx, accountId),
  };
}
