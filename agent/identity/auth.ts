/**
 * Who may call the agent. Everything but the public paths is signed and allowed by role; a route that is
 * in neither list is refused, so a route that somebody forgets to list is closed, not open.
 */
import type { FastifyRequest } from 'fastify';
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
  type TrustedKey,
} from '#shared/signing/request-verifier.ts';
import { type Verify, verifySr25519 } from '#shared/signing/sr25519.ts';
import { createFailureLimit } from './failure-limit.ts';
import { rolesFor } from './route-roles.ts';

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
