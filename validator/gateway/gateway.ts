/**
 * The gateway: an HTTP server that accepts only signed requests of the central API. It relays commands to agents and
 * serves the validator's own routes. Health, version and metrics are public, optionally on a separate monitoring
 * listener.
 */
import type { FastifyRequest } from 'fastify';
import { rejectSecretsOverHttp } from '#shared/api/agent/secrets.ts';
import {
  type ReadinessCheck,
  registerLiveness,
  registerReadiness,
  withoutDetails,
} from '#shared/api/readiness.ts';
import { createHttpServer, type HttpServer } from '#shared/http/server.ts';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Loop } from '#shared/runtime/loop.ts';
import type { Random } from '#shared/runtime/random.ts';
import { VERSION } from '#shared/runtime/version.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import {
  createReplayCache,
  createRequestVerifier,
  MAX_SKEW_MS,
  type PendingRequest,
} from '#shared/signing/request-verifier.ts';
import { verifySr25519 } from '#shared/signing/sr25519.ts';
import {
  CERTIFICATE_INTERVAL_MS,
  type CertificateSource,
  createCertificateJob,
} from '#shared/tls/listener-certificate.ts';
import { registerMetricsRoutes, type ValidatorMetrics } from '../metrics.ts';
import { type RelayOptions, registerGatewayRoutes } from './gateway.routes.ts';

export type GatewayOptions = {
  clock: Clock;
  random: Random;
  log: Log;
  /** The validator's hotkey, to which requests must be addressed. */
  audience: Hotkey;
  /** The only key whose requests are accepted. */
  central: Hotkey;
  /** Certificate of the gateway; null serves plain HTTP. */
  certificates: CertificateSource | null;
  /** Called with the time of each request that the central API signed. */
  onPeerTime(timeMs: number): void;
  /** Serves metrics on a separate plain listener, and not on the gateway's. */
  separateMonitoring: boolean;
  metrics: Pick<ValidatorMetrics, 'render' | 'contentType'>;
  /** Served at /readyz. */
  readiness: ReadinessCheck;
  relay: Omit<RelayOptions, 'clock'>;
  /** Further routes of the validator. */
  routes: readonly ((server: HttpServer) => void)[];
};

const BODY_LIMIT_BYTES = 1024 * 1024;
/** No monitoring route accepts a body. */
const MONITORING_BODY_LIMIT_BYTES = 1_024;

/** The caller listens on `server` and `monitoring`. */
export function createGateway(options: GatewayOptions) {
  const { clock, random, log, audience, central, certificates } = options;
  const auth = createGatewayAuth({
    clock,
    log,
    audience,
    central,
    onPeerTime: options.onPeerTime,
  });
  const certificate = certificates === null ? null : createCertificateJob(certificates, log);
  const server = createHttpServer({
    log,
    clock,
    random,
    bodyLimitBytes: BODY_LIMIT_BYTES,
    acceptTraceparent: true,
    verifyBody: auth.verifyBody,
    tls: certificate?.current() ?? null,
  });
  auth.install(server);
  rejectSecretsOverHttp(server);
  const monitoring = options.separateMonitoring
    ? createHttpServer({ log, clock, random, bodyLimitBytes: MONITORING_BODY_LIMIT_BYTES })
    : null;
  registerMetricsRoutes(monitoring ?? server, { metrics: options.metrics });
  const startedAt = naiveUtc(clock.now());
  for (const each of monitoring === null ? [server] : [server, monitoring]) {
    registerLiveness(each);
    registerReadiness(
      each,
      each === monitoring ? options.readiness : withoutDetails(options.readiness),
    );
    each.get('/version', async () => ({
      version: VERSION,
      hotkey: audience,
      started_at: startedAt,
    }));
  }
  registerGatewayRoutes(server, { ...options.relay, clock });
  for (const register of options.routes) register(server);

  return {
    server,
    /** Null unless `separateMonitoring` is set. */
    monitoring,
    /** Starts the periodic renewal of the certificate; null without TLS. */
    renewCertificate: (): Loop | null =>
      certificate?.renewEvery(CERTIFICATE_INTERVAL_MS, server, clock) ?? null,
    async close(): Promise<void> {
      await Promise.all([server.close(), monitoring?.close()]);
    },
  };
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Set after the headers of a signed request were verified, until its body is. */
    pendingSignature: PendingRequest | null;
  }
}

const PUBLIC_PATHS: ReadonlySet<string | undefined> = new Set([
  '/healthz',
  '/readyz',
  '/version',
  '/metrics',
]);
const NO_BODY = new Uint8Array(0);

export type GatewayAuthOptions = Pick<
  GatewayOptions,
  'clock' | 'log' | 'audience' | 'central' | 'onPeerTime'
>;

/** `install` adds the check of headers; pass `verifyBody` to `createHttpServer`. */
export function createGatewayAuth(options: GatewayAuthOptions) {
  const { clock, log, audience, central, onPeerTime } = options;
  const verifier = createRequestVerifier({
    clock,
    audience,
    keys: [{ hotkey: central, roles: ['central'] }],
    replay: createReplayCache(2 * MAX_SKEW_MS),
    verify: verifySr25519,
    onFailure: (reason, signer) => log.warn({ reason, signer }, 'request refused'),
    onPeerTime,
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
