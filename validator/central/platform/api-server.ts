/**
 * Creates the HTTP server, installs the hooks that run for every request in their order, and generates the OpenAPI
 * descriptions of the API and the portal.
 */
import { createHttpServer, type HttpServer } from '#shared/http/server.ts';
import { INTACT_DATABASE } from '../../database/database-watch.ts';
import type { CentralOptions, CentralPorts } from './central-deps.ts';
import { installCors } from './edge/cors.ts';
import { errorProfileOf } from './edge/error-profiles.ts';
import { refuseMisnamedFields } from './edge/field-names.ts';
import {
  allowReserves,
  installBodyLimits,
  installSecurityHeaders,
  refuseUnstorable,
  refuseWritesWhileDamaged,
} from './edge/request-hooks.ts';
import { refuseMalformedIdempotencyKeys } from './idempotency/once.ts';
import { describeInterface } from './openapi/openapi.ts';
import type { Processes } from './processes.ts';
import { DEFAULT_LIMITS } from './rate-limits/policies.ts';
import { createRateLimits } from './rate-limits/rate-limit.ts';

export const API_PREFIX = '/api';
export const PORTAL_PREFIX = '/portal';
const BODY_LIMIT_BYTES = 1024 * 1024;

type VerifyBody = NonNullable<Parameters<typeof createHttpServer>[0]['verifyBody']>;

export type ApiServerDeps = {
  ports: CentralPorts;
  options: CentralOptions;
  processes: Pick<Processes, 'count'>;
  /** Verifies requests whose signature covers the body. */
  verifyBody: VerifyBody;
  /** Installs the hook that sets the identity of each request. */
  authenticate(server: HttpServer): void;
};

/** Creates the server. Routes are registered afterwards, with `registerBelow`. */
export async function createApiServer(deps: ApiServerDeps): Promise<HttpServer> {
  const { ports, options, processes, verifyBody, authenticate } = deps;
  const { clock, random, log, metrics } = ports;
  const server = createHttpServer({
    log,
    clock,
    random,
    bodyLimitBytes: BODY_LIMIT_BYTES,
    trustedProxies: options.trustedProxies,
    profileOf: errorProfileOf,
    verifyBody,
  });
  const limits = createRateLimits(options.rateLimits ?? DEFAULT_LIMITS, {
    clock,
    divisor: processes.count,
  });
  metrics?.watch(server);
  installSecurityHeaders(server);
  installCors(server, options.corsOrigins ?? []);
  allowReserves(server);
  refuseWritesWhileDamaged(server, ports.databaseHealth ?? INTACT_DATABASE);
  limits.beforeAuthentication(server);
  authenticate(server);
  refuseUnstorable(server);
  limits.afterAuthentication(server);
  installBodyLimits(server);
  refuseMalformedIdempotencyKeys(server);
  refuseMisnamedFields(server);
  await describeInterface(server, {
    prefix: API_PREFIX,
    title: 'Podwright',
    decorator: 'swagger',
  });
  await describeInterface(server, {
    prefix: PORTAL_PREFIX,
    title: 'Podwright provider portal',
    decorator: 'portalDescription',
  });
  return server;
}

/** Registers groups of routes below a prefix, in order. */
export async function registerBelow(
  server: HttpServer,
  prefix: string,
  groups: readonly ((scope: HttpServer) => void | Promise<void>)[],
): Promise<void> {
  await server.register(
    async (scope) => {
      for (const register of groups) await register(scope);
    },
    { prefix },
  );
}
