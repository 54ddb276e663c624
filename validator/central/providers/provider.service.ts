/**
 * Log-in, password and log-out of providers. A provider signs the current unix time in seconds with its hotkey. Each
 * signature is accepted once.
 */
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { type Hotkey, publicKeyOf } from '#shared/signing/hotkey.ts';
import { type Verify, verifySr25519 } from '#shared/signing/sr25519.ts';
import type { LogInTickets } from '../accounts/auth/log-in-ticket.ts';
import type { Passwords } from '../accounts/auth/password.ts';
import { spendLogin } from '../accounts/auth/replay-guard.ts';
import type { Sessions } from '../accounts/auth/session.ts';
import type { Database, Db, Provider } from '../platform/database/tables.ts';
import { lockRow } from '../platform/database/transactions.ts';
import type { PortalIdentity } from '../platform/identity.ts';
import type { Miner, PortalLogin, PortalPasswordLogin, SetPassword } from './provider.schemas.ts';
import {
  findOrInsertProvider,
  findProvider,
  findProviderByHotkey,
  listSubscriptions,
  updateProvider,
} from './provider.store.ts';

/** Maximum difference between the signed time and the server's time, in either direction. */
const LOGIN_WINDOW_MS = 300_000;
const SECOND_MS = 1_000;

export type ProvidersDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  sessions: Sessions;
  logInTickets: LogInTickets;
  passwords: Passwords;
  /** Hotkeys of validators, which cannot log in as providers. */
  validators: readonly Hotkey[];
};

type LoggedIn = { miner: Miner; token: string };

export type Providers = ReturnType<typeof createProviders>;

export function createProviders(deps: ProvidersDeps) {
  const { db, clock, random, sessions, logInTickets, passwords, validators } = deps;

  /**
   * Returns the expiry of the signature in milliseconds. Throws 401, with different messages for a wrong time and a
   * wrong signature.
   */
  function requireSigned(login: PortalLogin): number {
    // Validators are rejected, because their signatures for other routes have the same form as a log-in.
    if (validators.some((hotkey) => hotkey === login.miner_hotkey)) throw validatorHotkey();
    const expiresAtMs = loginExpiry(login, clock.now());
    if (expiresAtMs === 'outside the window') throw timeOutsideWindow(clock.now());
    if (expiresAtMs === 'not signed') throw badSignature();
    return expiresAtMs;
  }

  /**
   * Records the use of the signature, and creates the provider on its first log-in. Throws 401 if the signature was
   * already used.
   */
  async function useSignature(tx: Db, login: PortalLogin, expiresAtMs: number): Promise<Provider> {
    const nowMs = clock.now();
    const { miner_hotkey: hotkey, message } = login;
    if (!(await spendLogin(tx, { hotkey, message, expiresAtMs }))) throw alreadyUsed();
    return findOrInsertProvider(tx, newProvider(random.uuid(), hotkey, nowMs));
  }

  return {
    /** `client` is the User-Agent of the request. */
    async logIn(login: PortalLogin, client: string | null): Promise<LoggedIn> {
      const expiresAtMs = requireSigned(login);
      const { provider, classes } = await db.transaction().execute(async (tx) => {
        const provider = await useSignature(tx, login, expiresAtMs);
        return { provider, classes: await listSubscriptions(tx, provider.id) };
      });
      const { token } = await sessions.issue(db, 'portal', provider.id, client);
      return { miner: minerOf(provider, classes), token };
    },

    /** Throws the same `unauthorized`, after the same time, for an unknown hotkey, no password and a wrong one. */
    async logInByPassword(
      { miner_hotkey: hotkey, password }: PortalPasswordLogin,
      client: string | null,
    ): Promise<LoggedIn> {
      const found = await findProviderByHotkey(db, hotkey);
      const matches = await passwords.matches(password, found?.password_hash ?? null);
      if (found === undefined || !matches) throw wrongPassword();
      const session = await sessions.sign('portal', found.id, client);
      return db.transaction().execute(async (tx) => {
        await lockRow(tx, 'providers', found.id);
        const provider = await findProvider(tx, found.id);
        // Rejects the compared password if it was changed during the comparison.
        if (provider?.password_hash !== found.password_hash) throw wrongPassword();
        await session.store(tx);
        const classes = await listSubscriptions(tx, provider.id);
        return { miner: minerOf(provider, classes), token: session.token };
      });
    },

    /** Creates a log-in ticket. Throws 403 for a provider token, which has no session. */
    async issueTicket({ providerId: subjectId, credential }: PortalIdentity) {
      if (credential.type === 'session') {
        return logInTickets.issue('portal', { subjectId, sessionId: credential.sessionId });
      }
      throw new ApiError('forbidden', 'A provider token cannot create log-in tickets', {
        hint: 'Log in and send the session token.',
      });
    },

    /** Exchanges a single-use ticket for a session. Throws `ticket_invalid`. */
    async logInByTicket(ticket: string, client: string | null): Promise<LoggedIn> {
      const { subjectId, session } = await logInTickets.exchange('portal', ticket, client);
      const provider = await findProvider(db, subjectId);
      if (provider === undefined) throw new Error(`provider ${subjectId} has sessions but no row`);
      const classes = await listSubscriptions(db, subjectId);
      return { miner: minerOf(provider, classes), token: session.token };
    },

    /**
     * Sets the password and ends all sessions, because another person may know the earlier password. Requires no token,
     * because the signature identifies the provider.
     */
    async setPassword({ new_password: password, ...login }: SetPassword): Promise<void> {
      const expiresAtMs = requireSigned(login);
      const passwordHash = await passwords.hash(password);
      await db.transaction().execute(async (tx) => {
        const { id } = await useSignature(tx, login, expiresAtMs);
        // A concurrent log-in or exchange of a ticket stores its session under the same lock.
        await lockRow(tx, 'providers', id);
        await updateProvider(tx, id, { password_hash: passwordHash, updated_at: clock.now() });
        await sessions.revokeAll(tx, 'portal', id, null);
      });
    },

    /** Ends the session, with the sessions that its tickets began. Throws 400 for a provider token, which has no session. */
    async logOut({ providerId, credential }: PortalIdentity): Promise<void> {
      if (credential.type === 'session') {
        await sessions.revoke(db, 'portal', providerId, credential.sessionId);
        return;
      }
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

function validatorHotkey(): ApiError {
  return new ApiError('forbidden', 'This hotkey belongs to a validator', {
    hint: 'Use another hotkey to offer nodes.',
  });
}

function wrongPassword(): ApiError {
  return new ApiError('unauthorized', 'The hotkey or the password is wrong', {
    hint: 'Check both, or log in with a signature and set a new password (POST /auth/set-password).',
  });
}

function badSignature(): ApiError {
  return new ApiError('unauthorized', 'The signature of the log-in is not valid', {
    hint: 'Sign the current unix time in seconds with the hotkey; use a new signature for each log-in.',
  });
}

/**
 * Returns the error for a signed time outside the window. It may contain the server's time, because every response
 * contains it in its Date header.
 */
function timeOutsideWindow(nowMs: number): ApiError {
  const server = Math.floor(nowMs / SECOND_MS);
  return new ApiError(
    'unauthorized',
    `The signed time is more than ${LOGIN_WINDOW_MS / SECOND_MS} seconds from the server's, which is ${server}`,
    { hint: 'Correct the clock, then sign the current unix time in seconds.' },
  );
}

function alreadyUsed(): ApiError {
  return new ApiError('unauthorized', 'A log-in with this time was already used', {
    hint: 'Wait a second, sign the new time, and send the signature once.',
  });
}

function minerOf(provider: Provider, gpuClasses: string[]): Miner {
  return {
    id: provider.id,
    miner_hotkey: provider.hotkey,
    miner_coldkey: provider.coldkey ?? provider.hotkey,
    email: provider.email,
    discord_id: provider.chat_user_id,
    machine_request_subscription: gpuClasses,
    created_at: naiveUtc(provider.created_at),
    updated_at: naiveUtc(provider.updated_at),
  };
}

/**
 * Returns the key that receives the provider's earnings: the coldkey if it is known, otherwise the hotkey. Returns null
 * for a banned provider.
 */
export async function payoutKeyOf(db: Db, providerId: string): Promise<string | null> {
  const provider = await findProvider(db, providerId);
  if (provider === undefined || provider.banned_at !== null) return null;
  return provider.coldkey ?? provider.hotkey;
}

type LoginFault = 'not signed' | 'outside the window';

/** Returns the expiry of the signature in milliseconds, or the fault of the log-in. */
function loginExpiry(
  { miner_hotkey, message, signature }: PortalLogin,
  nowMs: number,
  verify: Verify = verifySr25519,
): number | LoginFault {
  if (!/^\d{1,12}$/.test(message)) return 'not signed';
  const signedAtMs = Number(message) * SECOND_MS;
  if (Math.abs(nowMs - signedAtMs) > LOGIN_WINDOW_MS) return 'outside the window';
  const publicKey = publicKeyOf(miner_hotkey);
  const bytes = bytesOf(signature);
  if (publicKey === null || bytes === null) return 'not signed';
  // Browser wallets sign the text in the form `<Bytes>…</Bytes>`.
  const texts = [message, `<Bytes>${message}</Bytes>`].map((text) =>
    new TextEncoder().encode(text),
  );
  const signed = texts.some((text) => verify(text, bytes, publicKey));
  return signed ? signedAtMs + LOGIN_WINDOW_MS : 'not signed';
}

function bytesOf(signature: string): Uint8Array | null {
  const digits = /^(?:0x)?([0-9a-f]{128})$/i.exec(signature)?.[1];
  return digits === undefined ? null : new Uint8Array(Buffer.from(digits, 'hex'));
}
