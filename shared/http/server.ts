/** One fastify instance as every listener of ours has it: zod, request ids, error bodies, 404 and 405. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { Server as HttpsServer } from 'node:https';
import type { Socket } from 'node:net';
import { parse } from 'node:querystring';
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
  type RawServerDefault,
} from 'fastify';
import {
  serializerCompiler,
  validatorCompiler,
  type ZodTypeProvider,
} from 'fastify-type-provider-zod';
import type { Clock } from '../runtime/clock.ts';
import { ApiError } from '../runtime/errors.ts';
import type { Log } from '../runtime/log.ts';
import type { Random } from '../runtime/random.ts';
import { withRequestId } from '../runtime/request-context.ts';
import { type OpenSpan, openSpan, withSpan } from '../telemetry/tracing.ts';
import {
  answerClientError,
  contentTypeOf,
  type ErrorProfile,
  errorBody,
  toApiError,
  wantsProblem,
} from './error-body.ts';
import { acceptOnlyJson, requestIdFrom } from './request-input.ts';
import { acceptUpgrades, wantsWebSocket } from './upgrade.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Null where nobody traces. */
    span: OpenSpan | null;
  }
  interface FastifyContextConfig {
    /** Bodies of this route may take longer than others': its handler bounds them. */
    slowBody?: true;
    /** A POST that changes nothing, and comes often. */
    reads?: true;
  }
}

/** A fastify instance whose schemas are zod objects. */
export type HttpServer = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse<IncomingMessage>,
  FastifyBaseLogger,
  ZodTypeProvider
>;

export type HttpServerOptions = {
  log: Log;
  clock: Clock;
  random: Random;
  /** Bytes; a larger body is answered 413. */
  bodyLimitBytes: number;
  /** Addresses of proxies whose X-Forwarded-For is believed; none when absent. */
  trustedProxies?: readonly string[];
  /** Which error body a path gets with a status; `envelope` everywhere by default. */
  profileOf?(path: string, status: number): ErrorProfile;
  /** Runs with the raw body before its syntax is judged: the place for body signatures. */
  verifyBody?(request: FastifyRequest): Promise<void>;
  /** In which a whole request arrives, but for those of `slowBody` routes; 30 seconds when absent. */
  requestTimeoutMs?: number;
  /** Callers are our own processes: what they do is part of their traces. Not when absent. */
  acceptTraceparent?: boolean;
  /** Serves TLS 1.3 with this certificate, and nothing else; plain HTTP when absent. */
  tls?: TlsCertificate | null;
};

/** PEM, both. */
export type TlsCertificate = { cert: string; key: string };

/** Given at once and not set afterwards: fastify would load its own before, and keep some MB of them. */
const COMPILERS = {
  schemaController: {
    compilersFactory: {
      buildValidator: () => validatorCompiler,
      buildSerializer: () => serializerCompiler,
    },
  },
};

const REQUEST_TIMEOUT_MS = 30_000;
/** Long enough for any id of ours in a path; fastify's 100 would turn a long id into a 404. */
const MAX_PARAM_LENGTH = 512;

/** By then another process, or this one again, has taken over. */
const RETRY_WHEN_CLOSED_SECONDS = '5';

/** Creates the instance; the caller registers routes and listens. `/x` and `/x/` are served alike. */
export function createHttpServer(options: HttpServerOptions): HttpServer {
  const { log, clock, random, trustedProxies = [] } = options;
  const { requestTimeoutMs = REQUEST_TIMEOUT_MS } = options;
  const slowBody = new WeakSet<Socket>();
  // Node would answer a request without Host itself, with an empty body.
  const listener = {
    requireHostHeader: false,
    shouldUpgradeCallback: wantsWebSocket,
    // Node takes the shorter of the two time-outs for the headers and the longer one for the whole.
    headersTimeout: requestTimeoutMs,
    connectionsCheckingInterval: requestTimeoutMs,
  };
  const secure = options.tls ? { https: { ...listener, ...tlsOptions(options.tls) } } : {};
  const server: HttpServer = Fastify({
    loggerInstance: log as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    // One of its own for each request would cost more than most requests do: whoever logs names the request.
    childLoggerFactory: (logger) => logger,
    bodyLimit: options.bodyLimitBytes,
    trustProxy: trustedProxies.length > 0 && [...trustedProxies],
    requestTimeout: requestTimeoutMs,
    forceCloseConnections: 'idle',
    // Refused by `refuseWhileClosing` instead, with an error body like any other.
    return503OnClosing: false,
    genReqId: (request) => requestIdFrom(request.headers, random),
    routerOptions: {
      ignoreTrailingSlash: true,
      maxParamLength: MAX_PARAM_LENGTH,
      querystringParser: parseQuery,
    },
    clientErrorHandler(error, socket) {
      // Node has one time-out for all requests of a server, and asks here what to do about each: nothing ends this one.
      if (isLate(error) && slowBody.has(socket)) return;
      answerClientError(error, socket, { requestId: random.uuid(), nowMs: clock.now() });
    },
    http: listener,
    // Its type would make every server of ours one of two.
    ...(secure as object),
    // Its type knows no compilers but those that are left out here.
    ...(COMPILERS as object),
    frameworkErrors: (error, request, reply) => {
      void reply.header('X-Request-Id', request.id);
      sendError(error, request, reply);
    },
  }).withTypeProvider<ZodTypeProvider>();

  server.decorateRequest('span', null);
  acceptOnlyJson(server);

  const methods = createMethodIndex();
  server.addHook('onRoute', (route) => methods.add(route.method, route.url));
  // All that is done for the request is done withSpan; a body comes from outside again.
  server.addHook('onRequest', (request, reply, done) => {
    withRequestId(request.id, () => {
      request.span = spanOf(request, options.acceptTraceparent === true);
      reply.raw.once('close', () => endSpan(request.span, reply.statusCode));
      withSpan(request.span, done);
    });
  });
  server.addHook('preValidation', (request, _, done) => {
    withRequestId(request.id, () => withSpan(request.span, done));
  });
  server.addHook('onRequest', async (request, reply) => {
    void reply.header('X-Request-Id', request.id);
    if (request.routeOptions.config.slowBody === true) exempt(request.raw.socket, reply);
  });
  refuseWhileClosing(server);
  acceptUpgrades(server, clock);
  server.addHook('preValidation', async (request) => {
    await options.verifyBody?.(request);
    if (request.bodyError !== null) throw request.bodyError;
  });

  server.addHook('onResponse', async (request, { statusCode: status, elapsedTime }) => {
    const { method, routeOptions } = request;
    const line = { request_id: request.id, method, route: routeOptions.url, status };
    log[levelOf(request)]({ ...line, ms: Math.round(elapsedTime) }, 'answered');
  });

  /** From the end of the headers to that of the answer. */
  function exempt(socket: Socket, reply: FastifyReply): void {
    slowBody.add(socket);
    reply.raw.once('close', () => slowBody.delete(socket));
  }

  function sendError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
    const refusal = toApiError(error, request);
    const isFailure = refusal.status >= 500 && refusal.options.isExpected !== true;
    if (isFailure) log.error({ err: error, request_id: request.id }, 'request failed');
    const profile = profileFor(request, refusal);
    void reply
      .status(refusal.status)
      .headers(refusal.options.headers ?? {})
      .type(contentTypeOf(profile))
      .serializer(JSON.stringify)
      .send(errorBody(refusal, { requestId: request.id, nowMs: clock.now(), profile }));
  }

  /** What is no path at all belongs to no group of routes. */
  function profileFor(request: FastifyRequest, refusal: ApiError): ErrorProfile {
    if (wantsProblem(request.headers.accept)) return 'problem';
    const path = pathOf(request);
    if (request.is404 && methods.methodsOf(path).length === 0) return 'envelope';
    return options.profileOf?.(path, refusal.status) ?? 'envelope';
  }

  server.setErrorHandler(sendError);
  server.setNotFoundHandler((request, reply) => {
    const allowed = methods.methodsOf(pathOf(request));
    if (allowed.length === 0) throw new ApiError('not_found', 'There is nothing at this path');
    void reply.header('Allow', allowed.join(', '));
    throw new ApiError('method_not_allowed', `This path does not take ${request.method}`);
  });
  return server;
}

/** A part of the caller's trace, where the caller is believed to have one. */
function spanOf(
  { id, method, headers, routeOptions }: FastifyRequest,
  isBelieved: boolean,
): OpenSpan | null {
  const { traceparent } = headers;
  const route = routeOptions.url ?? 'none';
  const attributes = {
    ...{ 'http.request.method': method, 'http.route': route },
    'podwright.request_id': id,
  };
  const wish = { name: `${method} ${route}`, kind: 'server', attributes } as const;
  return openSpan(wish, isBelieved && typeof traceparent === 'string' ? traceparent : undefined);
}

function endSpan(span: OpenSpan | null, status: number): void {
  span?.note({ 'http.response.status_code': status });
  span?.end(status >= 500 ? `status ${status}` : null);
}

const READING: readonly string[] = ['GET', 'HEAD', 'OPTIONS'];

/** What changes something is worth a line; reading, and the many pieces of a backup, are not. */
function levelOf({ method, routeOptions: { config } }: FastifyRequest): 'info' | 'debug' {
  const isRead = READING.includes(method) || config.reads === true;
  return isRead || config.slowBody === true ? 'debug' : 'info';
}

const HANDSHAKE_TIMEOUT_MS = 10_000;

function tlsOptions({ cert, key }: TlsCertificate) {
  return {
    cert,
    key,
    minVersion: 'TLSv1.3' as const,
    handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
    ALPNProtocols: ['http/1.1'],
  };
}

/** Connections from now on are shown another certificate. No effect on a plain server. */
export function changeCertificate(server: HttpServer, certificate: TlsCertificate): void {
  if (server.server instanceof HttpsServer) {
    server.server.setSecureContext(tlsOptions(certificate));
  }
}

/** What connections that were open already when the server began to close may still do: have their answer, and end. */
function refuseWhileClosing(server: HttpServer): void {
  let isClosing = false;
  server.addHook('preClose', async () => {
    isClosing = true;
  });
  // Or it would be kept for another request, and the end waited for its time-out.
  server.server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    response.once('finish', () => {
      if (isClosing) socket.end();
    });
  });
  server.addHook('onRequest', async (_, reply) => {
    if (!isClosing) return;
    void reply.headers({ Connection: 'close', 'Retry-After': RETRY_WHEN_CLOSED_SECONDS });
    throw new ApiError('upstream_unavailable', 'The service is stopping', { status: 503 });
  });
}

function isLate(error: Error & { code?: string }): boolean {
  return error.code === 'ERR_HTTP_REQUEST_TIMEOUT';
}

function pathOf(request: FastifyRequest): string {
  return request.url.split('?', 1)[0] ?? '/';
}

/**
 * A parameter left blank counts as absent, as forms send it: no number schema may take it for 0. A repeated one is
 * an array for the schema to refuse.
 */
function parseQuery(text: string): Record<string, unknown> {
  const isGiven = (value: unknown) => typeof value !== 'string' || value.trim() !== '';
  return Object.fromEntries(Object.entries(parse(text)).filter(([, value]) => isGiven(value)));
}

/** Which methods a path has: what turns fastify's 404 into a 405 with an Allow header. */

type Entry = { pattern: RegExp; methods: Set<string> };

/** Holds one entry per distinct route pattern (`:name` and `*` as in fastify). */
export function createMethodIndex() {
  const entries = new Map<string, Entry>();
  return {
    add(method: string | string[], url: string): void {
      const entry = entries.get(url) ?? { pattern: patternOf(url), methods: new Set<string>() };
      for (const name of [method].flat()) entry.methods.add(name);
      entries.set(url, entry);
    },
    /** Sorted; empty when no route has this path. */
    methodsOf(path: string): string[] {
      const found = [...entries.values()].filter((entry) => entry.pattern.test(path));
      return [...new Set(found.flatMap((entry) => [...entry.methods]))].sort();
    },
  };
}

function patternOf(url: string): RegExp {
  const parts = url.replace(/\/+$/, '').split('/').map(partPattern);
  return new RegExp(`^${parts.join('/')}/?$`);
}

function partPattern(part: string): string {
  if (part === '*') return '.*';
  if (part.startsWith(':')) return '[^/]+';
  return part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
