/**
 * Authenticates every request according to `config.auth` of its route, before the body is read or a resource is
 * queried.
 */
import type { FastifyRequest } from 'fastify';
import type { HttpServer } from '#shared/http/server.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import type { Database } from '../../platform/database/tables.ts';
import {
  type AuthRule,
  type Identity,
  type PortalIdentity,
  reportsKeyStatus,
  type UserIdentity,
  type ValidatorIdentity,
} from '../../platform/identity.ts';
import { accountById } from './account-access.ts';
import { withinScope } from './route-scopes.ts';
import { findProviderHotkey } from './session.store.ts';
import type { Sessions } from './session.ts';
import type { StreamTickets } from './stream-ticket.ts';
import { bearerToken, sendsKey, type UserCredentials } from './user-credentials.ts';
import { requireOwnPath, type ValidatorSignatures } from './validator-signature.ts';

export type AuthenticationDeps = {
  db: Database;
  sessions: Sessions;
  users: UserCredentials;
  validators: ValidatorSignatures;
  tickets: StreamTickets;
  providerTokens: { check(token: string): Promise<ProviderTokenCheck> };
  /** Returns the validator linked to an account; null if there is none. */
  validatorOf(accountId: string): Promise<Hotkey | null>;
};

/** Prefix of provider tokens. Session tokens are JWTs and never begin with it. */
export const PROVIDER_TOKEN_PREFIX = 'lpk_';

/** Result of checking a provider token; the providers module issues and stores these tokens. */
export type ProviderTokenCheck =
  | { state: 'valid'; tokenId: string; providerId: string; hotkey: Hotkey }
  | { state: 'expired' }
  | { state: 'invalid' };

/** Portal clients treat 419 as "expired, log in again" and 401 as "invalid". */
const PORTAL_TOKEN_EXPIRED = 419;
const PORTAL_HINT =
  'Log in at /portal/auth/login-flexible and send Authorization: Bearer with the token.';

/**
 * Guards every route that is registered afterwards, according to its `config.auth` and the scopes of API keys. Throws
 * for a route without `config.auth`.
 */
export function installAuthentication(server: HttpServer, deps: AuthenticationDeps): void {
  server.decorateRequest('identity', null);
  server.addHook('onRoute', (route) => {
    if (route.config?.auth === undefined) {
      throw new Error(`${String(route.method)} ${route.url} has no config.auth`);
    }
  });
  server.addHook('onRequest', async (request, reply) => {
    const rule = request.routeOptions.config.auth;
    // Only the handler for 404 and 405 has no rule.
    if (rule === undefined) return;
    const identity = withinScope(request, await identify(request, rule, deps));
    if (rule === 'operator') await requireOperator(identity, deps);
    request.identity = identity;
    const isReported = reportsKeyStatus(request.routeOptions.config);
    if (isReported && identity === null && sendsKey(request)) {
      void reply.header('X-API-Key-Status', 'invalid');
    }
  });
}

function identify(
  request: FastifyRequest,
  rule: AuthRule,
  deps: AuthenticationDeps,
): Promise<Identity | null> | Identity {
  switch (rule) {
    case 'none':
      return userIfValid(request, deps);
    case 'user':
      return byHeadersOrTicket(request, deps);
    case 'operator':
      return deps.users.identify(request);
    case 'session':
      return sessionOnly(request, deps);
    case 'portal':
      return portal(request, deps);
    case 'validator':
      return deps.validators.identify(request);
    case 'validator-or-account':
      return bearerToken(request) === null
        ? deps.validators.identify(request)
        : validatorOfAccount(request, deps);
    case 'weights':
      return deps.validators.identifyByPath(request);
  }
}

/**
 * Identifies the caller by the credential stored with the request's ticket. Without a ticket, reads the request's
 * headers.
 */
async function byHeadersOrTicket(request: FastifyRequest, deps: AuthenticationDeps) {
  const headers = (await deps.tickets.redeem(request)) ?? request.headers;
  return deps.users.identify({ headers });
}

/** Treats invalid credentials as absent. Other errors, such as a failing database, still reject. */
async function userIfValid(request: FastifyRequest, deps: AuthenticationDeps) {
  try {
    return await deps.users.identify(request);
  } catch (error) {
    if (error instanceof ApiError) return null;
    throw error;
  }
}

/** Rejects with `forbidden` if the account does not have the operator's role now. */
async function requireOperator(identity: Identity | null, { db }: AuthenticationDeps) {
  const account = identity?.kind === 'user' ? await accountById(db, identity.accountId) : undefined;
  if (account !== undefined && account.operator_since !== null) return;
  throw new ApiError('forbidden', 'This account does not have the operator role', {
    hint: 'The role is granted on the host: npm run central -- operator grant EMAIL --reason TEXT.',
  });
}

async function sessionOnly(
  request: FastifyRequest,
  deps: AuthenticationDeps,
): Promise<UserIdentity> {
  const identity = await deps.users.identify(request);
  if (identity.credential.type === 'session') return identity;
  throw new ApiError('forbidden', 'An API key may not do this', {
    hint: 'Log in (POST /users/login) and send the session token without an API key.',
  });
}

/** Accepts a session of an account for which a validator's hotkey has signed a proof. */
async function validatorOfAccount(
  request: FastifyRequest,
  deps: AuthenticationDeps,
): Promise<ValidatorIdentity> {
  const { accountId } = await sessionOnly(request, deps);
  const hotkey = await deps.validatorOf(accountId);
  if (hotkey === null) {
    throw new ApiError('forbidden', 'The account has no validator_hotkey', {
      hint: 'Link a validator to the account with `validator_proof` of PUT /users/me.',
    });
  }
  requireOwnPath(request, hotkey);
  return { kind: 'validator', hotkey, accountId };
}

/** Accepts a session token or a provider token (`lpk_…`). */
async function portal(request: FastifyRequest, deps: AuthenticationDeps): Promise<PortalIdentity> {
  const token = bearerToken(request);
  if (token === null) {
    throw new ApiError('unauthorized', 'The portal token is missing', {
      hint: PORTAL_HINT,
    });
  }
  const found = token.startsWith(PROVIDER_TOKEN_PREFIX)
    ? await byProviderToken(token, deps)
    : await byPortalSession(token, deps);
  if (found === 'expired') {
    throw new ApiError('client_error', 'The portal token has expired', {
      status: PORTAL_TOKEN_EXPIRED,
      hint: 'Sign in again with the hotkey.',
    });
  }
  if (found === 'invalid') {
    throw new ApiError('unauthorized', 'The portal token is invalid', { hint: PORTAL_HINT });
  }
  return { kind: 'portal', ...found };
}

type PortalCheck = Omit<PortalIdentity, 'kind'> | 'expired' | 'invalid';

async function byPortalSession(
  token: string,
  { db, sessions }: AuthenticationDeps,
): Promise<PortalCheck> {
  const check = await sessions.check(db, 'portal', token);
  if (check.state !== 'valid') return check.state;
  const { subjectId: providerId, sessionId } = check;
  const hotkey = await findProviderHotkey(db, providerId);
  if (hotkey === undefined) return 'invalid';
  return { providerId, hotkey: hotkey as Hotkey, credential: { type: 'session', sessionId } };
}

async function byProviderToken(
  token: string,
  { providerTokens }: AuthenticationDeps,
): Promise<PortalCheck> {
  const check = await providerTokens.check(token);
  if (check.state !== 'valid') return check.state;
  const { providerId, hotkey, tokenId } = check;
  return { providerId, hotkey, credential: { type: 'token', tokenId } };
}
