/** Routes that run once per Idempotency-Key. They state a name in `config.once` and respond through `answerOnce`. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { contentTypeOf, errorBody, wantsProblem } from '#shared/http/error-body.ts';
import type { HttpServer } from '#shared/http/server.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { ApiError } from '#shared/runtime/errors.ts';
import type { Db } from '../database/tables.ts';
import { errorProfileOf } from '../edge/error-profiles.ts';
import {
  type Answer,
  type AtRest,
  fingerprintOf,
  type Idempotency,
  idempotencyKeyOf,
  type Outcome,
} from './idempotency.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Name of the route in claims and fingerprints. The name must not change when the path changes. */
    once?: string;
  }
}

export type OnceDeps = { idempotency: Idempotency; clock: Clock };

export type OnceAnswer<Schema extends z.ZodType> = {
  schema: Schema;
  /** Performs the effects in one transaction. May await only queries on `tx`. */
  effects(tx: Db): Promise<z.output<Schema>>;
  /** Status of a successful response. Default: 200. */
  status?: number;
  /** Additional encryption of stored responses that contain a secret. */
  atRest?: AtRest;
  /** Called after the effects were rejected and rolled back, before the response is sent. */
  onRefused?(error: unknown): Promise<void>;
};

const OK = 200;
const FIRST_ERROR = 400;

/** Rejects malformed keys before the body is validated. */
export function refuseMalformedIdempotencyKeys(server: HttpServer): void {
  server.addHook('preValidation', ({ routeOptions, headers }, _, done) => {
    if (routeOptions.config.once !== undefined) idempotencyKeyOf(headers['idempotency-key']);
    done();
  });
}

/**
 * Runs the effects, or sends the response that is stored under the same key. Returns true if the effects succeeded, in
 * this request or in the request that stored the response.
 */
export async function answerOnce<Schema extends z.ZodType>(
  { idempotency, clock }: OnceDeps,
  { request, reply }: { request: FastifyRequest; reply: FastifyReply },
  { schema, effects, status = OK, atRest, onRefused }: OnceAnswer<Schema>,
): Promise<boolean> {
  const route = request.routeOptions.config.once;
  if (route === undefined) throw new Error('the route states no config.once');
  const ids = Object.values(request.params as Record<string, string>);
  const outcome = await reportingRefusal({ effects, onRefused }, (attempt) =>
    idempotency.once({
      accountId: ownerOf(request),
      route,
      key: idempotencyKeyOf(request.headers['idempotency-key']),
      fingerprint: fingerprintOf(route, ids, request.body),
      effects: async (tx) => ({
        status,
        body: JSON.stringify(schema.encode(await attempt(tx))),
      }),
      refusal: (error) => refusalAnswer(error, request, clock.now()),
      ...(atRest === undefined ? {} : { atRest }),
    }),
  );
  void sendStored(request, reply, outcome);
  return outcome.status === status;
}

/** Runs `run`. If the last attempt of the effects failed, calls `onRefused` with its error. */
async function reportingRefusal<T>(
  {
    effects,
    onRefused,
  }: { effects(tx: Db): Promise<T>; onRefused: OnceAnswer<never>['onRefused'] },
  run: (attempt: (tx: Db) => Promise<T>) => Promise<Outcome>,
): Promise<Outcome> {
  if (onRefused === undefined) return run(effects);
  let refused: { error: unknown } | null = null;
  try {
    return await run(async (tx) => {
      refused = null;
      try {
        return await effects(tx);
      } catch (error) {
        refused = { error };
        throw error;
      }
    });
  } finally {
    const { error } = refused ?? { error: null };
    if (error !== null) await onRefused(error);
  }
}

/** Returns the id of the account or provider. Both are random, so they cannot collide. */
function ownerOf({ identity }: FastifyRequest): string {
  if (identity?.kind === 'user') return identity.accountId;
  if (identity?.kind === 'portal') return identity.providerId;
  throw new Error('an Idempotency-Key needs an account or a provider');
}

function refusalAnswer(error: ApiError, request: FastifyRequest, nowMs: number): Answer {
  const profile = wantsProblem(request.headers.accept)
    ? 'problem'
    : errorProfileOf(request.routeOptions.url ?? '', error.status);
  const body = errorBody(error, { requestId: request.id, nowMs, profile });
  return { status: error.status, body: JSON.stringify(body) };
}

/** Sends the stored bytes unchanged. A repeat has the Accept header of the first request. */
function sendStored(
  { headers: { accept } }: FastifyRequest,
  reply: FastifyReply,
  { status, body, replayed }: Outcome,
): FastifyReply {
  const isProblem = status >= FIRST_ERROR && wantsProblem(accept);
  if (replayed) void reply.header('Idempotent-Replayed', 'true');
  return reply
    .status(status)
    .type(contentTypeOf(isProblem ? 'problem' : 'envelope'))
    .serializer((text: unknown) => String(text))
    .send(body);
}
