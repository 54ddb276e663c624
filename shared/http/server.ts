/** The fastify instance of every listener: zod schemas, request ids, error bodies, 404 and 405, tracing, TLS. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { Server as HttpsServer } from 'node:https';
import type { Socket } from 'node:net';
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
import { currentRequestId, withRequestId } from '../runtime/request-context.ts';
import { type OpenSpan, openSpan, withSpan } from '../telemetry/tracing.ts';
import {
  answerClientError,
  contentTypeOf,
  type ErrorProfile,
  errorBody,
  toApiError,
  wantsProblem,
} from './error-body.ts';
import { acceptOnlyJson, parseQuery, requestIdFrom } from './request-input.ts';
import { acceptUpgrades, refuseInBrowser, wantsWebSocket } from './upgrade.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Null if tracing is off. */
    span: OpenSpan | null;
  }
  interface FastifyContextConfig {
    /** Exempts the route from the request timeout; its handler limits the time for the body. */
    slowBody?: true;
    /** Marks a POST that changes nothing: its log line has level debug. */
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
  /** Bytes; a larger body is rejected with 413. */
  bodyLimitBytes: number;
  /** Addresses of proxies whose X-Forwarded-For is trusted; default none. */
  trustedProxies?: readonly string[];
  /** Selects the error body for a path and status; default `envelope`. */
  profileOf?(path: string, status: number): ErrorProfile;
  /** Called with the raw body before it is validated, to check its signature. */
  verifyBody?(request: FastifyRequest): Promise<void>;
  /** Time for a whole request to arrive, except on `slowBody` routes; default 30 s. */
  requestTimeoutMs?: number;
  /** Continues the callers' traces; set if callers are our own processes. Default false. */
  acceptTraceparent?: boolean;
  /** Serves only TLS 1.3 with this certificate; default plain HTTP. */
  tls?: TlsCertificate | null;
};

/** Certificate chain and private key in PEM. */
export type TlsCertificate = { cert: string; key: string };

/**
 * Compilers of schemas. They are passed at creation, because fastify would otherwise load its default
 * compilers, which use several MB.
 */
const COMPILERS = {
  schemaController: {
    compilersFactory: {
      buildValidator: () => validatorCompiler,
      buildSerializer: () => serializerCompiler,
    },
  },
};

const REQUEST_TIMEOUT_MS = 30_000;
/** Maximum length of a path parameter. With fastify's default of 100, a longer id would get a 404. */
const MAX_PARAM_LENGTH = 512;

/** Retry-After in seconds: enough for a restart, or for another process to take over. */
const RETRY_WHEN_CLOSED_SECONDS = '5';

/** Creates the instance; the caller registers routes and listens. `/x` and `/x/` are the same path. */
export function createHttpServer(options: HttpServerOptions): HttpServer {
  const { log, clock, random, trustedProxies = [] } = options;
  const { requestTimeoutMs = REQUEST_TIMEOUT_MS } = options;
  const slowSockets = new WeakSet<Socket>();
  // Without `requireHostHeader: false`, Node would reject a request without Host with an empty body.
  const listener = {
    requireHostHeader: false,
    shouldUpgradeCallback: wantsWebSocket,
    // Node applies the shorter timeout to the headers and the longer one to the whole request.
    headersTimeout: requestTimeoutMs,
    connectionsCheckingInterval: requestTimeoutMs,
  };
  const handshakeTimeout = Math.min(HANDSHAKE_TIMEOUT_MS, requestTimeoutMs);
  const secure = options.tls
    ? { https: { ...listener, ...tlsOptions(options.tls), handshakeTimeout } }
    : {};
  const server: HttpServer = Fastify({
    loggerInstance: log as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    // A child logger per request would cost more than most requests; instead, log calls add the request id.
    childLoggerFactory: (logger) => logger,
    bodyLimit: options.bodyLimitBytes,
    trustProxy: trustedProxies.length > 0 && [...trustedProxies],
    requestTimeout: requestTimeoutMs,
    forceCloseConnections: 'idle',
    // `rejectWhileClosing` responds instead, with our error body.
    return503OnClosing: false,
    genReqId: (request) => requestIdFrom(request.headers, random),
    routerOptions: {
      ignoreTrailingSlash: true,
      maxParamLength: MAX_PARAM_LENGTH,
      querystringParser: parseQuery,
    },
    clientErrorHandler(error, socket) {
      // Node has one timeout per server and emits this event for each late request; requests with slow bodies continue.
      if (isLate(error) && slowSockets.has(socket)) return;
      answerClientError(error, socket, { requestId: random.uuid(), nowMs: clock.now() });
    },
    http: listener,
    // Cast: the type of `https` would split HttpServer into two types.
    ...(secure as object),
    // Cast: the type does not allow replacing the compilers.
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
  // Hooks call `done` if they wait for nothing: a promise would cost each request more than the work of the hook.
  // The request's work runs in its context. Reading a body leaves the context, so the second hook enters it again.
  server.addHook('onRequest', (request, reply, done) => {
    void reply.header('X-Request-Id', request.id);
    if (request.routeOptions.config.slowBody === true) exempt(request.raw.socket, reply);
    withRequestId(request.id, () => {
      const span = startSpan(request, options.acceptTraceparent === true);
      request.span = span;
      if (span !== null) reply.raw.once('close', () => endSpan(span, reply.statusCode));
      withSpan(span, done);
    });
  });
  server.addHook('preValidation', (request, _, done) => {
    if (currentRequestId() === request.id) done();
    else withRequestId(request.id, () => withSpan(request.span, done));
  });
  rejectWhileClosing(server);
  acceptUpgrades(server, clock);
  server.addHook('preValidation', async (request) => {
    await options.verifyBody?.(request);
    if (request.bodyError !== null) throw request.bodyError;
  });

  server.addHook('onResponse', (request, { statusCode: status, elapsedTime }, done) => {
    const { method, routeOptions } = request;
    const line = { request_id: request.id, method, route: routeOptions.url, status };
    log[levelOf(request)]({ ...line, ms: Math.round(elapsedTime) }, 'answered');
    done();
  });

  /** Exempts the socket from the request timeout until the response ends. */
  function exempt(socket: Socket, reply: FastifyReply): void {
    slowSockets.add(socket);
    reply.raw.once('close', () => slowSockets.delete(socket));
  }

  function sendError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
    const apiError = toApiError(error, request);
    const isFailure = apiError.status >= 500 && apiError.options.isExpected !== true;
    if (isFailure) log.error({ err: error, request_id: request.id }, 'request failed');
    const sendBody = () => sendErrorBody(apiError, request, reply);
    if (!refuseInBrowser({ request, reply }, apiError, sendBody)) sendBody();
  }

  function sendErrorBody(error: ApiError, request: FastifyRequest, reply: FastifyReply): void {
    const profile = profileFor(request, error);
    void reply
      .status(error.status)
      .headers(error.options.headers ?? {})
      .type(contentTypeOf(profile))
      .serializer(JSON.stringify)
      .send(errorBody(error, { requestId: request.id, nowMs: clock.now(), profile }));
  }

  /** Returns the error profile of a request. Paths without a route get the envelope. */
  function profileFor(request: FastifyRequest, error: ApiError): ErrorProfile {
    if (wantsProblem(request.headers.accept)) return 'problem';
    const path = pathOf(request);
    if (request.is404 && methods.methodsOf(path).length === 0) return 'envelope';
    return options.profileOf?.(path, error.status) ?? 'envelope';
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

/** Starts a span for the request; if `isTrusted`, as part of the caller's trace. */
function startSpan(
  { id, method, headers, routeOptions }: FastifyRequest,
  isTrusted: boolean,
): OpenSpan | null {
  const { traceparent } = headers;
  const route = routeOptions.url ?? 'none';
  const attributes = {
    'http.request.method': method,
    'http.route': route,
    'podwright.request_id': id,
  };
  const span = { name: `${method} ${route}`, kind: 'server', attributes } as const;
  return openSpan(span, isTrusted && typeof traceparent === 'string' ? traceparent : undefined);
}

function endSpan(span: OpenSpan, status: number): void {
  span.setAttributes({ 'http.response.status_code': status });
  span.end(status >= 500 ? `status ${status}` : null);
}

const READING: readonly string[] = ['GET', 'HEAD', 'OPTIONS'];

/** Returns the log level of a request: info for writes, debug for reads and for the many requests of a backup. */
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
    ALPNProtocols: ['http/1.1'],
  };
}

/** Presents another certificate to new connections. No effect on a plain server. */
export function changeCertificate(server: HttpServer, certificate: TlsCertificate): void {
  if (server.server instanceof HttpsServer) {
    server.server.setSecureContext(tlsOptions(certificate));
  }
}

/**
 * Adds the hooks for a shutdown: while the server closes, it completes pending requests and then closes their
 * connections; it responds to new requests with 503.
 */
function rejectWhileClosing(server: HttpServer): void {
  let isClosing = false;
  server.addHook('preClose', async () => {
    isClosing = true;
  });
  // Otherwise the keep-alive timeout would delay the close.
  server.server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    response.once('finish', () => {
      if (isClosing) socket.end();
    });
  });
  server.addHook('onRequest', (_, reply, done) => {
    if (!isClosing) return done();
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

type Entry = { pattern: RegExp; methods: Set<string> };

/** Records the methods of each route pattern (`:name` and `*` as in fastify), to answer 405 with an Allow header. */
export function createMethodIndex() {
  const entries = new Map<string, Entry>();
  return {
    add(method: string | string[], url: string): void {
      const entry = entries.get(url) ?? { pattern: patternOf(url), methods: new Set<string>() };
      for (const name of [method].flat()) entry.methods.add(name);
      entries.set(url, entry);
    },
    /** Returns the sorted methods of a path; empty if it has no route. */
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
