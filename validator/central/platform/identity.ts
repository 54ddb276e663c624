/** Identities of callers, and the authentication rules of routes. */
import type { FastifyRequest } from 'fastify';
import type { Hotkey } from '#shared/signing/hotkey.ts';

/** Kinds of clients. Requests state the kind in the header X-Source. */
export const SOURCES = ['ui', 'cli', 'sdk', 'mcp', 'programmatic'] as const;
export type Source = (typeof SOURCES)[number];

/** Rights of an API key. A key without a list of scopes has all rights. */
export const KEY_SCOPES = ['read', 'rent', 'manage'] as const;
export type KeyScope = (typeof KEY_SCOPES)[number];

export type UserIdentity = {
  kind: 'user';
  accountId: string;
  credential:
    | { type: 'session'; sessionId: string }
    | { type: 'api_key'; keyId: string; keyName: string; scopes: readonly KeyScope[] | null };
  source: Source;
  clientVersion: string | null;
};
/** Id of the API key of a caller; null for a session. */
export function keyIdOf({ credential }: UserIdentity): string | null {
  return credential.type === 'api_key' ? credential.keyId : null;
}

/** Returns false for an API key without the scope. */
export function hasScope({ credential }: UserIdentity, scope: KeyScope): boolean {
  return credential.type === 'session' || (credential.scopes?.includes(scope) ?? true);
}

export type PortalIdentity = {
  kind: 'portal';
  providerId: string;
  hotkey: Hotkey;
  credential: { type: 'session'; sessionId: string } | { type: 'token'; tokenId: string };
};
/**
 * `accountId` is set if a session of the validator's account made the request; null if the validator signed the
 * request.
 */
export type ValidatorIdentity = { kind: 'validator'; hotkey: Hotkey; accountId: string | null };
export type Identity = UserIdentity | PortalIdentity | ValidatorIdentity;

/**
 * Credential that a route requires. `none`: no credential is required, but a valid credential identifies the caller,
 * and the response may then contain more; `user`: API key or session; `session`: session only; `portal`: portal token;
 * `validator`: signed headers; `operator`: API key or session of an account with the operator's role;
 * `validator-or-account`: signed headers or a session of the validator's account; `weights`: a signature over the body
 * in Authorization, which the handler verifies.
 */
export type AuthRule =
  | 'none'
  | 'user'
  | 'session'
  | 'operator'
  | 'portal'
  | 'validator'
  | 'validator-or-account'
  | 'weights';

/**
 * Returns true for routes that require no credential and report an invalid API key in the header X-API-Key-Status. On a
 * route without a rate limit, a client could test any number of keys.
 */
export function reportsKeyStatus(route: { auth?: AuthRule | undefined; limit?: unknown }): boolean {
  return route.auth === 'none' && route.limit !== 'exempt';
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Required: a route without a rule is rejected when it is registered. */
    auth?: AuthRule;
  }
  interface FastifyRequest {
    identity: Identity | null;
  }
}

/** Returns the account that authenticated on a `user`, `session` or `operator` route. */
export function userOf(request: FastifyRequest): UserIdentity {
  if (request.identity?.kind !== 'user') throw new Error('the route does not require a user');
  return request.identity;
}

/** Returns the account that authenticated on a `none` route; null if the request has no valid credential. */
export function userIfAny(request: FastifyRequest): UserIdentity | null {
  return request.identity?.kind === 'user' ? request.identity : null;
}

/** Returns the provider that authenticated on a `portal` route. */
export function providerOf(request: FastifyRequest): PortalIdentity {
  if (request.identity?.kind !== 'portal') throw new Error('the route does not require a provider');
  return request.identity;
}

/** Returns the validator that authenticated on a `validator` route. */
export function validatorOf(request: FastifyRequest): ValidatorIdentity {
  if (request.identity?.kind !== 'validator')
    throw new Error('the route does not require a validator');
  return request.identity;
}

/** Returns the header User-Agent of a request; null if there is none. */
export function userAgentOf({ headers }: FastifyRequest): string | null {
  return headers['user-agent'] ?? null;
}

/** Originator of an action, recorded in events and in the ledger. */
export type Actor = {
  auth: 'session' | 'api_key' | 'provider' | 'validator' | 'system';
  apiKeyId: string | null;
  requestId: string | null;
};

export const SYSTEM_ACTOR: Actor = { auth: 'system', apiKeyId: null, requestId: null };

export function actorOf(request: FastifyRequest): Actor {
  const { identity, id: requestId } = request;
  switch (identity?.kind) {
    case 'user': {
      return { auth: identity.credential.type, apiKeyId: keyIdOf(identity), requestId };
    }
    case 'portal':
      return { auth: 'provider', apiKeyId: null, requestId };
    case 'validator':
      return { auth: 'validator', apiKeyId: null, requestId };
    default:
      return { auth: 'system', apiKeyId: null, requestId };
  }
}

/** Account of a request, and the actor that events of the request contain. */
export type Caller = { identity: UserIdentity; actor: Actor };

/** Returns the caller of a route that requires an account. */
export function callerOf(request: FastifyRequest): Caller {
  return { identity: userOf(request), actor: actorOf(request) };
}
