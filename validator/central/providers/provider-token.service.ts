/** Provider tokens `lpk_…`, with which a provider's programs sign in to the portal without a session. */

import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { type Random, randomToken } from '#shared/runtime/random.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import { sha256Hex } from '#shared/signing/signed-request.ts';
import { PROVIDER_TOKEN_PREFIX, type ProviderTokenCheck } from '../accounts/auth/authenticate.ts';
import type { Database } from '../platform/database/tables.ts';
import { lockRow } from '../platform/database/transactions.ts';
import type { PortalIdentity } from '../platform/identity.ts';
import type {
  CreateProviderToken,
  NewProviderToken,
  ProviderTokenRow,
} from './provider.schemas.ts';
import {
  deleteProviderToken,
  findProviderToken,
  insertProviderToken,
  listProviderTokens,
  type ProviderToken,
  touchProviderToken,
} from './provider-token.store.ts';

const SECRET_BYTES = 32;
const SHOWN_LAST = 5;
const MAX_PER_PROVIDER = 20;
const MAX_TOKEN_CHARS = 100;
/** Minimum time between two writes of a token's last use. */
const LAST_USED_RESOLUTION_MS = 60_000;

export type ProviderTokens = ReturnType<typeof createProviderTokens>;

export function createProviderTokens(deps: { db: Database; clock: Clock; random: Random }) {
  const { db, clock, random } = deps;

  return {
    async check(token: string): Promise<ProviderTokenCheck> {
      const row =
        token.length > MAX_TOKEN_CHARS ? undefined : await findProviderToken(db, sha256Hex(token));
      if (row === undefined) return { state: 'invalid' };
      const nowMs = clock.now();
      if (row.expires_at !== null && row.expires_at <= nowMs) return { state: 'expired' };
      const staleMs = nowMs - LAST_USED_RESOLUTION_MS;
      if (row.last_used_at === null || row.last_used_at <= staleMs) {
        await touchProviderToken(db, row.id, nowMs, staleMs);
      }
      const { id: tokenId, provider_id: providerId } = row;
      return { state: 'valid', tokenId, providerId, hotkey: row.hotkey as Hotkey };
    },

    /** Creates a token. Only this response contains the full token. Throws 403 if the caller signed in with a token. */
    async create(caller: PortalIdentity, body: CreateProviderToken): Promise<NewProviderToken> {
      requireSession(caller);
      const nowMs = clock.now();
      const expiresAtMs = body.expires_at ?? null;
      if (expiresAtMs !== null && expiresAtMs <= nowMs) {
        throw new ApiError('bad_request', 'expires_at is in the past');
      }
      const token = `${PROVIDER_TOKEN_PREFIX}${randomToken(random, SECRET_BYTES)}`;
      const row: ProviderToken = {
        id: random.uuid(),
        provider_id: caller.providerId,
        name: body.name,
        token_hash: sha256Hex(token),
        suffix: token.slice(-SHOWN_LAST),
        created_at: nowMs,
        expires_at: expiresAtMs,
        last_used_at: null,
      };
      await db.transaction().execute(async (tx) => {
        await lockRow(tx, 'providers', caller.providerId);
        if ((await listProviderTokens(tx, caller.providerId)).length >= MAX_PER_PROVIDER) {
          throw new ApiError('bad_request', `A provider has at most ${MAX_PER_PROVIDER} tokens`, {
            hint: 'Delete a token that is no longer used.',
          });
        }
        await insertProviderToken(tx, row);
      });
      return { ...rowOf(row), token };
    },

    async list(caller: PortalIdentity): Promise<ProviderTokenRow[]> {
      return (await listProviderTokens(db, caller.providerId)).map(rowOf);
    },

    /** Deletes a token. The token is then rejected. Throws 404 if the provider has no such token. */
    async remove(caller: PortalIdentity, id: string): Promise<ProviderTokenRow> {
      requireSession(caller);
      const row = await deleteProviderToken(db, caller.providerId, id);
      if (row === undefined) throw new ApiError('not_found', `There is no token ${id}`);
      return rowOf(row);
    },
  };
}

function requireSession({ credential }: PortalIdentity): void {
  if (credential.type === 'session') return;
  throw new ApiError('forbidden', 'A provider token may not create or delete tokens', {
    hint: 'Log in with the hotkey and send the session token.',
  });
}

function rowOf(row: ProviderToken): ProviderTokenRow {
  return {
    id: row.id,
    name: row.name,
    masked_token: `${PROVIDER_TOKEN_PREFIX}...${row.suffix}`,
    created_at: naiveUtc(row.created_at),
    expires_at: row.expires_at === null ? null : naiveUtc(row.expires_at),
    last_used: row.last_used_at === null ? null : naiveUtc(row.last_used_at),
  };
}
