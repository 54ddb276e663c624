/** Who a provider is: log-in and password by its hotkey, log-out (specification, Authentication 10; contract 10). */

import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import type { Passwords } from '../accounts/auth/password.ts';
import { spendLogin } from '../accounts/auth/replay-guard.ts';
import type { Sessions } from '../accounts/auth/session.ts';
import type { Database, Db, Provider } from '../platform/database/tables.ts';
import type { PortalIdentity } from '../platform/identity.ts';
import { LOGIN_WINDOW_MS, loginExpiry } from './hotkey-login.ts';
import type { Miner, PortalLogin, SetPassword } from './provider.schemas.ts';
import { findOrInsertProvider, findProvider, updateProvider } from './provider.store.ts';
import { listSubscriptions } from './subscription.store.ts';

const SECOND_MS = 1_000;

export type ProvidersDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  sessions: Sessions;
  passwords: Passwords;
  /** None of them may be a provider's. */
  validators: readonly Hotkey[];
};

export type Providers = ReturnType<typeof createProviders>;

/** Rules of what a provider proves by its hotkey's signature. */
export function createProviders(deps: ProvidersDeps) {
  const { db, clock, random, sessions, passwords, validators } = deps;

  /** When the signature stops being good. Throws 401, which tells a wrong time from a wrong signature. */
  function requireSigned(login: PortalLogin): number {
    // What validators sign for their own routes looks like a log-in.
    if (validators.some((hotkey) => hotkey === login.miner_hotkey)) throw validatorsKey();
    const expiresAtMs = loginExpiry(login, clock.now());
    if (expiresAtMs === 'outside the window') throw outsideWindow(clock.now());
    if (expiresAtMs === 'not signed') throw refused();
    return expiresAtMs;
  }

  /** Spends the signature. The first one of a hotkey makes its provider. Throws 401 for a second use. */
  async function prove(tx: Db, login: PortalLogin, expiresAtMs: number): Promise<Provider> {
    const nowMs = clock.now();
    const { miner_hotkey: hotkey, message } = login;
    if (!(await spendLogin(tx, { hotkey, message, expiresAtMs }))) throw usedAlready();
    return findOrInsertProvider(tx, newProvider(random.uuid(), hotkey, nowMs));
  }

  return {
    async logIn(login: PortalLogin): Promise<{ miner: Miner; token: string }> {
      const expiresAtMs = requireSigned(login);
      const { provider, classes } = await db.transaction().execute(async (tx) => {
        const provider = await prove(tx, login, expiresAtMs);
        return { provider, classes: await listSubscriptions(tx, provider.id) };
      });
      const { token } = await sessions.issue(db, 'portal', provider.id);
      return { miner: minerOf(provider, classes), token };
    },

    /** Without a token: the signature alone says who it is. */
    async setPassword({ new_password: password, ...login }: SetPassword): Promise<void> {
      const expiresAtMs = requireSigned(login);
      const passwordHash = await passwords.hash(password);
      await db.transaction().execute(async (tx) => {
        const { id } = await prove(tx, login, expiresAtMs);
        await updateProvider(tx, id, { password_hash: passwordHash, updated_at: clock.now() });
      });
    },

    /** Throws 400 for a provider token, which has no session. */
    async logOut({ credential }: PortalIdentity): Promise<void> {
      if (credential.type === 'session') return sessions.revoke(db, credential.sessionId);
      throw new ApiError('bad_request', 'A provider token has no session to end', {
        hint: 'Delete the token with DELETE /auth/tokens/{id} instead.',
      });
    },
  };
}

function newProvider(id: string, hotkey: string, nowMs: number): Provider {
  return {
    id,
    hotkey,
    coldkey: null,
    email: null,
    password_hash: null,
    chat_user_id: null,
    chat_username: null,
    opted_in: 1,
    banned_at: null,
    created_at: nowMs,
    updated_at: nowMs,
  };
}

function validatorsKey(): ApiError {
  return new ApiError('forbidden', 'This hotkey is a validator’s', {
    hint: 'Offer nodes under another hotkey.',
  });
}

function refused(): ApiError {
  return new ApiError('unauthorized', 'The log-in is not signed as required', {
    hint: 'Sign the present unix time in seconds with the hotkey, each time anew.',
  });
}

/** What time it is here is no secret: every answer's Date header tells it. */
function outsideWindow(nowMs: number): ApiError {
  const server = Math.floor(nowMs / SECOND_MS);
  return new ApiError(
    'unauthorized',
    `The signed time is more than ${LOGIN_WINDOW_MS / SECOND_MS} seconds from the server's, which is ${server}`,
    { hint: 'Set the clock, then sign the present unix time in seconds.' },
  );
}

function usedAlready(): ApiError {
  return new ApiError('unauthorized', 'A log-in with this time was used already', {
    hint: 'Wait a second, sign the time anew, and send it once.',
  });
}

function minerOf(provider: Provider, gpuClasses: string[]): Miner {
  return {
    id: provider.id,
    miner_hotkey: provider.hotkey,
    miner_coldkey: provider.coldkey,
    email: provider.email,
    discord_id: provider.chat_user_id,
    machine_request_subscription: gpuClasses,
    created_at: naiveUtc(provider.created_at),
    updated_at: naiveUtc(provider.updated_at),
  };
}

/** The key that a provider's earnings go to; null for one that is banned. */
export async function payoutKeyOf(db: Db, providerId: string): Promise<string | null> {
  const provider = await findProvider(db, providerId);
  if (provider === undefined || provider.banned_at !== null) return null;
  return provider.coldkey ?? provider.hotkey;
}
