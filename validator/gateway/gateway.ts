/** Only the central API's key, by signed request, may use the gateway. */
import type { FastifyRequest } from 'fastify';
import type { HttpServer } from '#shared/http/server.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import {
  createReplayCache,
  createRequestVerifier,
  MAX_SKEW_MS,
  type PendingRequest,
} from '#shared/signing/request-verifier.ts';
import { verifySr25519 } from '#shared/signing/sr25519.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set between the two halves of the signature check. */
    pendingSignature: PendingRequest | null;
  }
}

const PUBLIC_PATHS: ReadonlySet<string | undefined> = new Set(['/healthz', '/version', '/metrics']);
const NO_BODY = new Uint8Array(0);

export type GatewayAuthOptions = {
  clock: Clock;
  log: Log;
  /** The validator's own ss58: whom requests must be addressed to. */
  audience: Hotkey;
  central: Hotkey;
};

/** `install` adds the header check; `verifyBody` belongs into createHttpServer's options. */
export function createGatewayAuth({ clock, log, audience, central }: GatewayAuthOptions) {
  const verifier = createRequestVerifier({
    clock,
    audience,
    keys: [{ hotkey: central, roles: ['central'] }],
    replay: createReplayCache(2 * MAX_SKEW_MS),
    verify: verifySr25519,
    onFailure: (reason, signer) => log.warn({ reason, signer }, 'request refused'),
  });
  return {
    install(server: HttpServer): void {
      server.decorateRequest('pendingSignature', null);
      server.addHook('onRequest', async (request) => {
        if (request.is404 || PUBLIC_PATHS.has(request.routeOptions.url)) return;
        request.pendingSignature = verifier.checkHeaders(request, ['central']);
      });
    },
    async verifyBody(request: FastifyRequest): Promise<void> {
      if (request.pendingSignature === null) return;
      verifier.checkBody(request.pendingSignature, request.rawBody ?? NO_BODY);
    },
  };
}
