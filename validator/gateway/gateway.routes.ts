/** Relays the central API's commands to agents over HTTP and WebSocket, signed by the validator. */
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { agentError, relayedClockRefusal } from '#shared/api/agent/agent-client.ts';
import type { SignedConnect } from '#shared/api/agent/connect.ts';
import { sampleHistoryPath } from '#shared/api/agent/metric-history.ts';
import { AGENT_ROUTES, type AgentRoute } from '#shared/api/agent/routes.ts';
import {
  POD_LISTINGS_PATH,
  PodListings,
  PodListingsRequest,
} from '#shared/api/central/pod-listings.ts';
import {
  SAMPLE_HISTORIES_PATH,
  SampleHistories,
  SampleHistoriesRequest,
} from '#shared/api/central/sample-histories.ts';
import {
  CheckRequest,
  type ExecutorToCheck,
  HealthReport,
} from '#shared/api/central/validator-routes.ts';
import { boundedText } from '#shared/http/bounded-text.ts';
import type { HttpServer } from '#shared/http/server.ts';
import { clientGone } from '#shared/http/upgrade.ts';
import { relayWebSockets } from '#shared/http/websocket.ts';
import { type Clock, withDeadline } from '#shared/runtime/clock.ts';
import { ApiError, messageOf } from '#shared/runtime/errors.ts';
import { createPerOwnerLimit } from '#shared/runtime/semaphore.ts';
import { MAX_REFUSAL_BYTES, type SignedFetch } from '#shared/signing/signed-fetch.ts';
import type { ExecutorDirectory } from '../inspection/executor-directory.ts';
import type { HealthService } from '../inspection/health.service.ts';
import type { RentalProbes } from '../inspection/rental-probe/rental-probe.service.ts';

export type RelayOptions = {
  directory: ExecutorDirectory;
  health: HealthService;
  rentals: Pick<RentalProbes, 'yieldTo'>;
  sendTo(executor: ExecutorToCheck): SignedFetch;
  connectTo(executor: ExecutorToCheck): SignedConnect;
  clock: Clock;
};

/** Time limit of a relayed request: shorter than every caller's deadline, so that callers get an answer. */
const RELAY_TIMEOUT_MS = 12_000;
/** Timeout for ending a rental probe. Added to RELAY_TIMEOUT_MS it is still shorter than the callers' deadline. */
const YIELD_TIMEOUT_MS = 2_000;

const Target = z.object({ executorId: z.uuid(), id: z.uuid().optional() });

/** Relays the agent routes marked `relayed`, below `/v1/executors/{id}`. */
export function registerGatewayRoutes(server: HttpServer, options: RelayOptions): void {
  const relaySocket = createSocketRelay(options.connectTo);
  const routes: readonly AgentRoute[] = AGENT_ROUTES;
  for (const route of routes.filter((candidate) => candidate.relayed)) {
    server.route({
      ...(route.websocket === true ? { config: { websocket: true } } : {}),
      method: route.method,
      url: `/v1/executors/:executorId${route.path}`,
      schema: { params: Target },
      handler: (request, reply) => relay(request, reply, { ...options, relaySocket }),
    });
  }
  server.post(
    '/v1/executors/:executorId/check',
    { schema: { params: Target, body: CheckRequest, response: { 200: HealthReport } } },
    (request) => options.health.checkNow(request.params.executorId, request.body),
  );
  server.post(
    POD_LISTINGS_PATH,
    { schema: { body: PodListingsRequest, response: { 200: PodListings } } },
    async (request, reply) => {
      const gone = clientGone(request, reply);
      const queries = request.body.executor_ids.map((id) => ({ id, path: '/v1/pods' }));
      return { listings: await answersOf(queries, LISTING, { ...options, signal: gone }) };
    },
  );
  server.post(
    SAMPLE_HISTORIES_PATH,
    { schema: { body: SampleHistoriesRequest, response: { 200: SampleHistories } } },
    async (request, reply) => {
      const gone = clientGone(request, reply);
      const queries = request.body.queries.map(({ executor_id: id, ...query }) => ({
        id,
        path: sampleHistoryPath(query),
      }));
      return { histories: await answersOf(queries, HISTORY, { ...options, signal: gone }) };
    },
  );
}

/** Time for which a request to many nodes waits for each, and the longest answer of a node that the response contains. */
type AnswerLimits = { timeoutMs: number; maxBytes: number };
const LISTING: AnswerLimits = { timeoutMs: 500, maxBytes: 128 * 1024 };
const HISTORY: AnswerLimits = { timeoutMs: 2_000, maxBytes: 512 * 1024 };

/** Returns the answers of the nodes that answer in time and report no error, as they send them. */
async function answersOf(
  queries: readonly { id: string; path: string }[],
  limits: AnswerLimits,
  options: RelayOptions & { signal: AbortSignal },
) {
  const { directory, sendTo, clock, signal } = options;
  async function answerOf({ id, path }: { id: string; path: string }) {
    const deadline = clock.deadline(limits.timeoutMs, signal);
    const send = sendTo(await directory.find(id));
    const sent = send({ method: 'GET', path, signal: deadline });
    const response = await withDeadline(clock, limits.timeoutMs, sent);
    const text = await boundedText(response, limits.maxBytes);
    if (!response.ok) throw new Error(`the node answered with status ${response.status}`);
    return { executor_id: id, answer: JSON.parse(text) as unknown };
  }
  const found = await Promise.all(queries.map((query) => answerOf(query).catch(() => null)));
  return found.filter((each) => each !== null);
}

async function relay(
  request: FastifyRequest<{ Params: z.output<typeof Target> }>,
  reply: FastifyReply,
  { directory, rentals, sendTo, relaySocket, clock }: RelayOptions & { relaySocket: SocketRelay },
): Promise<FastifyReply> {
  const { executorId } = request.params;
  const executor = await directory.find(executorId);
  const path = request.url.slice(`/v1/executors/${executorId}`.length);
  if (request.upgrade !== null) {
    await relaySocket(request, reply, { executor, path });
    return reply;
  }
  // A renter has priority over a rental probe. If the probe has not ended in time, the central API retries the launch.
  if (request.method === 'PUT') {
    await withDeadline(clock, YIELD_TIMEOUT_MS, rentals.yieldTo(executorId)).catch(() => undefined);
  }
  const gone = new AbortController();
  reply.raw.once('close', () => gone.abort());
  // A log stream has no deadline once it has begun.
  const streaming = request.url.split('?', 1)[0]?.endsWith('/logs') === true;
  const signal = streaming ? gone.signal : clock.deadline(RELAY_TIMEOUT_MS, gone.signal);
  const sent = sendTo(executor)({
    method: request.method,
    path,
    headers: { 'x-request-id': request.id },
    ...(request.rawBody === null ? {} : { body: Buffer.from(request.rawBody).toString('utf8') }),
    signal,
  });
  const answer = await withDeadline(clock, RELAY_TIMEOUT_MS, sent).catch((error: unknown) => {
    const hasLeft = reply.raw.destroyed;
    gone.abort();
    if (hasLeft) return null;
    throw new ApiError('upstream_unavailable', `The node did not answer (${messageOf(error)})`, {
      cause: error,
    });
  });
  // The client disconnected; this is not an error of the node.
  if (answer === null) return reply.hijack();
  if (answer.status === UNAUTHORIZED) throw await refusalOf(answer, clock.now());
  void reply.status(answer.status);
  const type = answer.headers.get('content-type');
  if (type !== null) void reply.type(type);
  return reply.send(answer.body === null ? '' : Readable.fromWeb(answer.body));
}

const UNAUTHORIZED = 401;

/**
 * Returns the error of an agent that rejected the signature of this validator. The caller's signature was accepted, so
 * an error because of the time must not look like a refusal of the caller's time.
 */
async function refusalOf(answer: Response, nowMs: number): Promise<ApiError> {
  const text = await boundedText(answer, MAX_REFUSAL_BYTES).catch(() => '');
  const error = agentError(answer.status, jsonIn(text), { signsFor: 'node', nowMs });
  return relayedClockRefusal(error) ?? error;
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Maximum number of relayed sockets per executor and in total; each uses two connections. */
export const MAX_SOCKETS_PER_EXECUTOR = 200;
const MAX_SOCKETS = 1_000;
/** Longest message of any route: a log line of 64 KiB as JSON. */
const MAX_MESSAGE_BYTES = 1024 * 1024;
const RETRY_AFTER_SECONDS = '5';

type SocketRelay = ReturnType<typeof createSocketRelay>;

function createSocketRelay(connectTo: (executor: ExecutorToCheck) => SignedConnect) {
  const limit = createPerOwnerLimit(MAX_SOCKETS_PER_EXECUTOR, MAX_SOCKETS);

  /**
   * Resolves when both sides closed. Passes messages, backpressure and close codes in both directions; throws the
   * agent's refusal.
   */
  return async (
    request: FastifyRequest,
    reply: FastifyReply,
    { executor, path }: { executor: ExecutorToCheck; path: string },
  ): Promise<void> => {
    if (request.upgrade === null) throw new Error('the request is not an upgrade');
    if (!limit.tryAcquire(executor.id)) {
      throw new ApiError('rate_limited', 'There are too many streams to this node', {
        headers: { 'Retry-After': RETRY_AFTER_SECONDS },
      });
    }
    const signal = clientGone(request, reply);
    try {
      const far = await connectTo(executor)({
        path,
        headers: { 'x-request-id': request.id },
        maxMessageBytes: MAX_MESSAGE_BYTES,
        signal,
      }).catch((error: unknown) => {
        throw relayedClockRefusal(error) ?? error;
      });
      const options = { maxMessageBytes: MAX_MESSAGE_BYTES };
      const near = await request.upgrade.accept(reply, options).catch((error: unknown) => {
        far.terminate();
        throw error;
      });
      await relayWebSockets(near, far);
    } finally {
      limit.release(executor.id);
    }
  };
}
