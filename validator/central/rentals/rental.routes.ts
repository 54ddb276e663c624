/** Renting and the legacy un-rent (contract 4.1). */
import type { FastifyReply } from 'fastify';
import type { Clock } from '#shared/clock.ts';
import type { ApiError } from '#shared/errors.ts';
import { errorBody } from '#shared/http/error-body.ts';
import type { HttpServer } from '#shared/http/server.ts';
import { userOf } from '../auth/identity.ts';
import { ExecutorParams } from '../executors/executor.schemas.ts';
import { callerOf } from '../pods/caller.ts';
import { PodDeletedResponse } from '../pods/pod.schemas.ts';
import type { Pods } from '../pods/pod.service.ts';
import { fingerprintOf, idempotencyKeyOf } from './fingerprint.ts';
import type { Answer, Idempotency, Outcome } from './idempotency.ts';
import { RentExecutorRequest, RentExecutorResponse } from './rental.schemas.ts';
import { type RentDeps, rentIn } from './rental.service.ts';

const tags = ['Executors'];
const config = { auth: 'user' } as const;
/** Names the route in claims and fingerprints: it must outlive changes of the path. */
const ROUTE = 'rent';
const OK = 200;

export type RentalRoutesDeps = RentDeps & {
  clock: Clock;
  idempotency: Idempotency;
  pods: Pods;
  wake(executorId: string): void;
};

/** Registers them. */
export function registerRentalRoutes(api: HttpServer, deps: RentalRoutesDeps): void {
  const { idempotency, pods, clock } = deps;
  api.post(
    '/executors/:executor_uuid/rent',
    {
      config,
      // Before the body's schema (marketplace reference 1.1, order of gates).
      preValidation: async (request) => {
        idempotencyKeyOf(request.headers['idempotency-key']);
      },
      schema: {
        tags,
        params: ExecutorParams,
        body: RentExecutorRequest,
        response: { 200: RentExecutorResponse },
      },
    },
    async (request, reply) => {
      const { body } = request;
      const executorId = request.params.executor_uuid;
      const caller = callerOf(request);
      const outcome = await idempotency.once({
        accountId: userOf(request).accountId,
        route: ROUTE,
        key: idempotencyKeyOf(request.headers['idempotency-key']),
        fingerprint: fingerprintOf(ROUTE, [executorId], body),
        effects: async (tx) => {
          const pod = await rentIn(tx, deps, { ...caller, executorId, body });
          return { status: OK, body: JSON.stringify(RentExecutorResponse.encode(pod)) };
        },
        refusal: (error) => refusalAnswer(error, request.id, clock.now()),
      });
      if (outcome.status === OK) deps.wake(executorId);
      return sendStored(reply, outcome);
    },
  );
  api.delete(
    '/executors/:executor_uuid/rent',
    { config, schema: { tags, params: ExecutorParams, response: { 200: PodDeletedResponse } } },
    async (request) => ({
      ...(await pods.removeOnly(callerOf(request), request.params.executor_uuid)),
      success: true as const,
    }),
  );
}

function refusalAnswer(error: ApiError, requestId: string, nowMs: number): Answer {
  const body = errorBody(error, { requestId, nowMs, profile: 'envelope' });
  return { status: error.status, body: JSON.stringify(body) };
}

/** The stored bytes as they are. */
function sendStored(reply: FastifyReply, { status, body, replayed }: Outcome) {
  if (replayed) void reply.header('Idempotent-Replayed', 'true');
  return reply
    .status(status)
    .type('application/json; charset=utf-8')
    .serializer((text: unknown) => String(text))
    .send(body);
}
