/** Who calls: what authentication attaches to a request, and what routes demand (specification, Authentication). */
import type { FastifyRequest } from 'fastify';
import type { Hotkey } from '#shared/signing/hotkey.ts';

/** Where a rental came from (specification, Authentication 9). */
export const SOURCES = ['ui', 'cli', 'sdk', 'mcp', 'programmatic'] as const;
export type Source = (typeof SOURCES)[number];

export type UserIdentity = {
  kind: 'user';
  accountId: string;
  credential:
    | { type: 'session'; sessionId: string }
    | { type: 'api_key'; keyId: string; keyName: string };
  source: Source;
  clientVersion: string | null;
};
export type PortalIdentity = {
  kind: 'portal';
  providerId: string;
  hotkey: Hotkey;
  credential: { type: 'session'; sessionId: string } | { type: 'token'; tokenId: string };
};
/** `accountId`: of the account whose session speaks for it; null where the validator itself signed. */
export type ValidatorIdentity = { kind: 'validator'; hotkey: Hotkey; accountId: string | null };
export type Identity = UserIdentity | PortalIdentity | ValidatorIdentity;

/**
 * What a route demands. `none` never answers 401, yet a valid credential is still attached and enriches;
 * `user` takes key or session; `session` takes a session only; `portal` a portal token; `validator` signed headers;
 * `validator-or-account` those, or a session of the validator's account; `weights` a signature over the body in Authorization, which whoever records the body verifies.
 */
export type AuthRule =
  | 'none'
  | 'user'
  | 'session'
  | 'portal'
  | 'validator'
  | 'validator-or-account'
  | 'weights';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Every route states one: a route without it is refused at registration. */
    auth?: AuthRule;
  }
  interface FastifyRequest {
    identity: Identity | null;
  }
}

/** The account behind a `user` or `session` route. */
export function userOf(request: FastifyRequest): UserIdentity {
  if (request.identity?.kind !== 'user') throw new Error('the route demands no user');
  return request.identity;
}

/** The account if there is one: for `none` routes that a credential enriches. */
export function userIfAny(request: FastifyRequest): UserIdentity | null {
  return request.identity?.kind === 'user' ? request.identity : null;
}

/** The provider behind a `portal` route. */
export function providerOf(request: FastifyRequest): PortalIdentity {
  if (request.identity?.kind !== 'portal') throw new Error('the route demands no provider');
  return request.identity;
}

/** The validator behind a `validator` route. */
export function validatorOf(request: FastifyRequest): ValidatorIdentity {
  if (request.identity?.kind !== 'validator') throw new Error('the route demands no validator');
  return request.identity;
}

/** Who did something, as events record it (contract 5.2, event row). */
export type Actor = {
  auth: 'session' | 'api_key' | 'provider' | 'validator' | 'system';
  apiKeyId: string | null;
  requestId: string | null;
};

export const SYSTEM_ACTOR: Actor = { auth: 'system', apiKeyId: null, requestId: null };

/** The actor of the present request. */
export function actorOf(request: FastifyRequest): Actor {
  const { identity, id: requestId } = request;
  switch (identity?.kind) {
    case 'user': {
      const { credential } = identity;
      const apiKeyId = credential.type === 'api_key' ? credential.keyId : null;
      return { auth: credential.type, apiKeyId, requestId };
    }
    case 'portal':
      return { auth: 'provider', apiKeyId: null, requestId };
    case 'validator':
      return { auth: 'validator', apiKeyId: null, requestId };
    default:
      return { auth: 'system', apiKeyId: null, requestId };
  }
}

/** The account of a request, and the actor that its events name. */
export type Caller = { identity: UserIdentity; actor: Actor };

/** For routes that require an account. */
export function callerOf(request: FastifyRequest): Caller {
  return { identity: userOf(request), actor: actorOf(request) };
}
