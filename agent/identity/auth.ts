/**
 * Who may call the agent. Everything but the public paths is signed and allowed by role; a route that is
 * in neither list is refused, so a route that somebody forgets to list is closed, not open.
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
    /** The key that signed this request; null on public routes and until its body is verified. */
    caller: Hotkey | null;
    /** Headers checked, body and signature not yet; null on public routes. */
    pendingAuth: PendingRequest | null;
  }
}

export type AuthOptions = {
  clock: Clock;
  executorId: string;
  keys: readonly TrustedKey[];
  log: Log;
  metrics: { authFailed(reason: AuthFailure | 'address' | 'unlisted_route'): void };
  /** sr25519 when absent. */
  verify?: Verify;
};

export type Auth = ReturnType<typeof createAuth>;

/**
 * The two halves of authentication. `verifyBody` goes into createHttpServer, which calls it with the raw
 * body before its syntax is judged; the rest is added by `registerAuth`.
 */
export function createAuth({ clock, executorId, keys, log, metrics, verify }: AuthOptions) {
  const limit = createFailureLimit(clock);
  const verifier = createRequestVerifier({
    clock,
    audience: executorId,
    keys,
    replay: createReplayCache(2 * MAX_SKEW_MS),
    verify: verify ?? verifySr25519,
    onFailure(reason, signer) {
      metrics.authFailed(reason);
      log.info({ reason, signer }, 'request refused');
    },
  });

  return {
    /** Everything that needs no body. Unknown paths pass: the router answers those 404 or 405. */
    async onRequest(request: FastifyRequest): Promise<void> {
      const roles = rolesOf(request);
      if (roles === 'public') return;
      if (roles === null) {
        metrics.authFailed('unlisted_route');
        throw new ApiError('forbidden', 'Nobody may do this here');
      }
      if (!limit.allows(request.ip)) {
        metrics.authFailed('address');
        throw new ApiError('auth_busy', 'Too many failed requests from this address');
      }
      request.pendingAuth = verifier.checkHeaders(request, roles);
    },

    /**
     * Body hash, signature, nonce. Only failures here count against the address: refusing bad headers
     * is cheap, and counting them would let unsigned noise lock out a validator behind the same address.
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

/** Call before any route is registered: routes registered earlier would not be guarded. */
export function registerAuth(server: HttpServer, auth: Auth): void {
  server.decorateRequest('caller', null);
  server.decorateRequest('pendingAuth', null);
  server.addHook('onRequest', auth.onRequest);
}

function rolesOf(request: FastifyRequest) {
  if (request.is404) return 'public';
  return rolesFor(request.method, request.routeOptions.url ?? '');
}

// MERGED agent/identity/auth.ts: Which roles a route admits: the listed routes of the agent, the public ones, and nothing else. Pure.
/** Routes that need no signature: they tell nothing of pods or keys. */
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

/** `pattern` is the route as it was registered, so no spelling of a path can reach another entry. */
export function rolesFor(method: string, pattern: string): 'public' | readonly Role[] | null {
  if (PUBLIC.has(pattern)) return method === 'GET' || method === 'HEAD' ? 'public' : null;
  return ROLES_OF.get(`${method} ${pattern}`) ?? null;
}

// MERGED agent/identity/auth.ts: Slows down whoever makes us check signatures in vain: a token bucket per address (validator reference 2.2).
export type FailureLimit = {
  /** False while the address has spent its failures. */
  allows(address: string): boolean;
  /** Takes one token. */
  failed(address: string): void;
};

/** Failures in a row before an address has to wait. */
export const BURST = 30;
/** One failure is forgiven in this time. */
export const REFILL_MS = 1_000;
/** Addresses remembered; the one that failed longest ago is forgotten first. */
const MAX_ADDRESSES = 10_000;

type Bucket = { tokens: number; atMs: number };

/** `maxAddresses` is for tests. */
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
      // Deleted first, so that the map's order is the order of the last failures.
      buckets.delete(network);
      const [oldest] = buckets.keys();
      if (oldest !== undefined && buckets.size >= maxAddresses) buckets.delete(oldest);
      buckets.set(network, { tokens, atMs: clock.monotonicMs() });
    },
  };
}
