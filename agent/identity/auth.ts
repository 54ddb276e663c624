/**
 * Authenticates requests to the agent. All routes except the public ones require a signature and a role; the protocol
 * is described in shared/signing/README.md. A route that is neither public nor listed with roles is refused.
 */
import type { FastifyRequest } from 'fastify';
import { IDENTITY_PATH } from '#shared/api/agent/identity.ts';
import { AGENT_ROUTES } from '#shared/api/agent/routes.ts';
import { clientAddressKey } from '#shared/http/addresses.ts';
import type { HttpServer } from '#shared/http/server.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import {
  type AuthFailure,
  createReplayCache,
  createRequestVerifier,
  MAX_SKEW_MS,
  type PendingRequest,
  type Role,
  type TrustedKey,
} from '#shared/signing/request-verifier.ts';
import { type Verify, verifySr25519 } from '#shared/signing/sr25519.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Key that signed this request; null on public routes and until the body is verified. */
    caller: Hotkey | null;
    /** The request between the check of its headers and the check of its signature; null on public routes. */
    pendingAuth: PendingRequest | null;
  }
}

export type AuthOptions = {
  clock: Clock;
  executorId: string;
  keys: readonly TrustedKey[];
  log: Log;
  metrics: { authFailed(reason: AuthFailure | 'address' | 'unlisted_route'): void };
  /** Signature check; sr25519 by default. */
  verify?: Verify;
  /** Called with the time of each request that a validator or central API signed. */
  onPeerTime?(timeMs: number): void;
};

export type Auth = ReturnType<typeof createAuth>;

/**
 * Returns the two halves of authentication. Pass `verifyBody` to createHttpServer, which calls it with the raw body before
 * the body is parsed; `registerAuth` adds `onRequest`.
 */
export function createAuth(options: AuthOptions) {
  const { clock, executorId, keys, log, metrics, verify, onPeerTime } = options;
  const limit = createFailureLimit(clock);
  const verifier = createRequestVerifier({
    clock,
    audience: executorId,
    keys,
    replay: createReplayCache(2 * MAX_SKEW_MS),
    verify: verify ?? verifySr25519,
    ...(onPeerTime === undefined ? {} : { onPeerTime }),
    onFailure(reason, signer) {
      metrics.authFailed(reason);
      log.info({ reason, signer }, 'request rejected');
    },
  });

  return {
    /** Replaces the keys that may call the agent. */
    replaceKeys: verifier.replaceKeys,

    /**
     * Checks everything that does not depend on the body. Unknown paths pass, so that the router answers 404 or 405.
     */
    async onRequest(request: FastifyRequest): Promise<void> {
      const roles = rolesOf(request);
      if (roles === 'public') return;
      if (roles === null) {
        metrics.authFailed('unlisted_route');
        throw new ApiError('forbidden', 'No role may call this route');
      }
      if (!limit.allows(request.ip)) {
        metrics.authFailed('address');
        throw new ApiError('auth_busy', 'Too many failed requests from this address');
      }
      request.pendingAuth = verifier.checkHeaders(request, roles);
    },

    /**
     * Checks body hash, signature and nonce. Only failures here count against the address: rejecting bad headers is
     * cheap, and counting them would let unsigned requests lock out a validator behind the same address.
     */
    async verifyBody(request: FastifyRequest): Promise<void> {
      if (rolesOf(request) === 'public') return;
      const pending = request.pendingAuth;
      if (pending === null) throw new ApiError('auth_failed', 'The request is not signed');
      try {
        const { signer } = verifier.checkBody(pending, request.rawBody ?? new Uint8Array());
        request.caller = signer;
      } catch (error) {
        limit.failed(request.ip);
        throw error;
      }
    },
  };
}

/** Call before any route is registered: earlier routes would not be protected. */
export function registerAuth(server: HttpServer, auth: Auth): void {
  server.decorateRequest('caller', null);
  server.decorateRequest('pendingAuth', null);
  server.addHook('onRequest', auth.onRequest);
}

function rolesOf(request: FastifyRequest) {
  if (request.is404) return 'public';
  return rolesFor(request.method, request.routeOptions.url ?? '');
}

/** Routes that need no signature. They reveal nothing about pods or keys. */
export const PUBLIC_PATHS = [
  '/healthz',
  '/readyz',
  '/version',
  '/metrics',
  '/update-status',
  IDENTITY_PATH,
];

const PUBLIC = new Set(PUBLIC_PATHS);
const ROLES_OF = new Map<string, readonly Role[]>(
  AGENT_ROUTES.map((route) => [`${route.method} ${route.path}`, route.roles]),
);

/**
 * Roles that may call a route; null if no role may. `pattern` is the route as registered, so no spelling of a path can match
 * another entry.
 */
export function rolesFor(method: string, pattern: string): 'public' | readonly Role[] | null {
  if (PUBLIC.has(pattern)) return method === 'GET' || method === 'HEAD' ? 'public' : null;
  return ROLES_OF.get(`${method} ${pattern}`) ?? null;
}

/** Token bucket per address that limits failed signature checks. */
export type FailureLimit = {
  /** False while the address has no tokens left. */
  allows(address: string): boolean;
  /** Takes one token. */
  failed(address: string): void;
};

/** Capacity of a bucket: consecutive failures before an address must wait. */
export const BURST = 30;
/** Time in which one token is added. */
export const REFILL_MS = 1_000;
/** Limit of buckets; the address that failed longest ago is dropped first. */
const MAX_ADDRESSES = 10_000;

type Bucket = { tokens: number; atMs: number };

/** `maxAddresses` is set by tests only. */
export function createFailureLimit(clock: Clock, maxAddresses = MAX_ADDRESSES): FailureLimit {
  const buckets = new Map<string, Bucket>();

  function tokensOf(network: string): number {
    const bucket = buckets.get(network);
    if (bucket === undefined) return BURST;
    return Math.min(BURST, bucket.tokens + (clock.monotonicMs() - bucket.atMs) / REFILL_MS);
  }

  return {
    allows: (address) => tokensOf(clientAddressKey(address)) >= 1,
    failed(address) {
      const network = clientAddressKey(address);
      const tokens = Math.max(0, tokensOf(network) - 1);
      // Deleted and inserted again, so that the map's order is the order of the last failures.
      buckets.delete(network);
      const [oldest] = buckets.keys();
      if (oldest !== undefined && buckets.size >= maxAddresses) buckets.delete(oldest);
      buckets.set(network, { tokens, atMs: clock.monotonicMs() });
    },
  };
}
