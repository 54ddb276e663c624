/** Providers: log-in by hotkey and profile (specification, Authentication 10; contract 10). */
import { type Clock, naiveUtc } from '#shared/clock.ts';
import { ApiError } from '#shared/errors.ts';
import type { Random } from '#shared/random.ts';
import type { PortalIdentity } from '../auth/identity.ts';
import type { Sessions } from '../auth/session.ts';
import type { Database, Provider } from '../db/tables.ts';
import { loginExpiry } from './hotkey-login.ts';
import type { Miner, PortalLogin, ProviderProfile } from './provider.schemas.ts';
import {
  dropExpiredNonces,
  findOrInsertProvider,
  findProvider,
  useNonce,
} from './provider.store.ts';

export type ProvidersDeps = { db: Database; clock: Clock; random: Random; sessions: Sessions };

export type Providers = ReturnType<typeof createProviders>;

/** Rules of the portal's own routes. */
export function createProviders({ db, clock, random, sessions }: ProvidersDeps) {
  async function requireProvider(identity: PortalIdentity): Promise<Provider> {
    const provider = await findProvider(db, identity.providerId);
    if (provider === undefined) throw new Error(`provider ${identity.providerId} is missing`);
    return provider;
  }

  return {
    /** The first log-in of a hotkey makes its provider. Every failure looks the same. */
    async logIn(login: PortalLogin): Promise<{ miner: Miner; token: string }> {
      const nowMs = clock.now();
      const hotkey = login.miner_hotkey;
      const expiresAtMs = loginExpiry(login, nowMs);
      if (expiresAtMs === null) throw refused();
      const fresh: Provider = {
        id: random.uuid(),
        hotkey,
        coldkey: null,
        email: null,
        opted_in: 1,
        banned_at: null,
        created_at: nowMs,
        updated_at: nowMs,
      };
      const provider = await db.transaction().execute(async (tx) => {
        await dropExpiredNonces(tx, nowMs);
        const nonce = { hotkey, message: login.message, expires_at: expiresAtMs };
        if (!(await useNonce(tx, nonce))) throw refused();
        return findOrInsertProvider(tx, fresh);
      });
      const { token } = await sessions.issue(db, 'portal', provider.id);
      return { miner: minerOf(provider), token };
    },

    async profile(identity: PortalIdentity): Promise<ProviderProfile> {
      const provider = await requireProvider(identity);
      const { id } = provider;
      return {
        provider_id: id,
        miner_id: id,
        id,
        miner_hotkey: provider.hotkey,
        miner_coldkey: provider.coldkey,
        email: provider.email,
        discord_id: null,
        discord_connected: false,
        extra_incentive_eligible: false,
        machine_request_subscription: [],
        opt_in_status: provider.opted_in === 1,
      };
    },

    logOut: (identity: PortalIdentity) => sessions.revoke(db, identity.sessionId),
  };
}

function refused(): ApiError {
  return new ApiError('unauthorized', 'The log-in is not signed as required', {
    hint: 'Sign the present unix time in seconds with the hotkey, each time anew.',
  });
}

function minerOf(provider: Provider): Miner {
  return {
    id: provider.id,
    miner_hotkey: provider.hotkey,
    miner_coldkey: provider.coldkey,
    email: provider.email,
    discord_id: null,
    machine_request_subscription: [],
    created_at: naiveUtc(provider.created_at),
    updated_at: naiveUtc(provider.updated_at),
  };
}
