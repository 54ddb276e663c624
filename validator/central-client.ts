/** Typed caller of the central API's validator routes; embedded or remote, it is the same HTTP (contract 11). */
import type { z } from 'zod';
import {
  type LatestSetWeights,
  LatestSetWeightsResponse,
  signSetWeights,
} from '#shared/api/central/set-weights.ts';
import { ExecutorsToCheck } from '#shared/api/central/validator-routes.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { createSignedFetch } from '#shared/signing/signed-fetch.ts';
import { type Signer, toHex } from '#shared/signing/sr25519.ts';

export type CentralClient = ReturnType<typeof createCentralClient>;

const CALL_TIMEOUT_MS = 25_000;
const WEIGHTS_PATH = '/latest-set-weights';
const WEIGHTS_TIMEOUT_MS = 5_000;
/** Of an answer that is shown to people. */
const MAX_REASON_CHARS = 500;
/** The audience that the central API answers to. */
export const CENTRAL_AUDIENCE = 'central';

export type CentralClientOptions = {
  /** With `/api`, without a slash at the end. */
  baseUrl: string;
  signer: Signer;
  clock: Clock;
  random: Random;
};

/** A status, with the beginning of the body for people. */
type Answer = { status: number; text: string };

/** Calls reject with ApiError `upstream_unavailable` when there is no usable answer. */
export function createCentralClient({ baseUrl, signer, clock, random }: CentralClientOptions) {
  const send = createSignedFetch({ baseUrl, audience: CENTRAL_AUDIENCE, signer, clock, random });

  type Call = {
    method: 'GET' | 'POST';
    path: string;
    body?: string;
    headers?: Record<string, string>;
    timeoutMs: number;
  };

  async function call({ method, path, body, headers = {}, timeoutMs }: Call): Promise<Response> {
    const own = await timestampHeaders(signer, clock);
    return send({
      method,
      path: `/validator/${signer.hotkey}${path}`,
      ...(body === undefined ? {} : { body }),
      headers: { ...own, ...headers },
      signal: clock.deadline(timeoutMs),
    }).catch((error: unknown) => {
      throw unavailable('does not answer', error);
    });
  }

  async function read<T>(request: Call, schema: z.ZodType<T>): Promise<T> {
    const { path } = request;
    const response = await call(request);
    if (!response.ok) {
      await response.body?.cancel();
      throw unavailable(`answered ${path} with status ${response.status}`);
    }
    const parsed = schema.safeParse(await response.json().catch(() => undefined));
    if (!parsed.success) throw unavailable(`answered ${path} in an unknown form`, parsed.error);
    return parsed.data;
  }

  async function tell(request: Call): Promise<Answer> {
    const response = await call(request);
    const text = await response.text().catch(() => '');
    return { status: response.status, text: text.slice(0, MAX_REASON_CHARS) };
  }

  const post = <T>(path: string, body: unknown, schema: z.ZodType<T>): Promise<T> =>
    read({ method: 'POST', path, body: JSON.stringify(body), timeoutMs: CALL_TIMEOUT_MS }, schema);

  return {
    listExecutors: () => post('/executors', {}, ExecutorsToCheck),

    /** Posts a health check as it was stored, under the same key however often; any status is an answer. */
    postHealth: (body: string, idempotencyKey: string) =>
      tell({
        method: 'POST',
        path: '/executor-health-check',
        body,
        headers: { 'idempotency-key': idempotencyKey },
        timeoutMs: CALL_TIMEOUT_MS,
      }),

    /** Posts a set of weights; any status is an answer. */
    postWeights: async (payload: LatestSetWeights) =>
      tell({
        method: 'POST',
        path: WEIGHTS_PATH,
        body: JSON.stringify(payload),
        headers: { authorization: await signSetWeights(payload, signer) },
        timeoutMs: WEIGHTS_TIMEOUT_MS,
      }),

    /** The set that the central API shows as ours. */
    readWeights: () =>
      read(
        { method: 'GET', path: WEIGHTS_PATH, timeoutMs: WEIGHTS_TIMEOUT_MS },
        LatestSetWeightsResponse,
      ),
  };
}

/** What this market's API has always asked of validators; the canonical set beside it covers the body. */
async function timestampHeaders(signer: Signer, clock: Clock): Promise<Record<string, string>> {
  const timestamp = String(Math.floor(clock.now() / 1000));
  const signature = toHex(await signer.sign(new TextEncoder().encode(timestamp)));
  return { hotkey: signer.hotkey, timestamp, signature };
}

function unavailable(what: string, cause?: unknown): ApiError {
  return new ApiError('upstream_unavailable', `The central API ${what}`, { cause });
}
