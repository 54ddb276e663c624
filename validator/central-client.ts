/** Typed client of the central API's validator routes. Sends HTTP requests even if both services run in one process. */
import type { z } from 'zod';
import { ReportsToExamine } from '#shared/api/central/pod-reports.ts';
import {
  type LatestSetWeights,
  LatestSetWeightsResponse,
  signSetWeights,
} from '#shared/api/central/set-weights.ts';
import { ExecutorsToCheck } from '#shared/api/central/validator-routes.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError, type ApiErrorOptions } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { createSignedFetch } from '#shared/signing/signed-fetch.ts';
import { type Signer, toHex } from '#shared/signing/sr25519.ts';
import type { Transport } from '#shared/tls/transport.ts';

export type CentralClient = ReturnType<typeof createCentralClient>;

const CALL_TIMEOUT_MS = 25_000;
const WEIGHTS_PATH = '/latest-set-weights';
const WEIGHTS_TIMEOUT_MS = 5_000;
/** Maximum length of a logged error body, in characters. */
const MAX_REASON_CHARS = 500;
/** Audience of requests to the central API. */
export const CENTRAL_AUDIENCE = 'central';

/** Remedy for status 401 and 403. */
export const REJECTED_REMEDY =
  'the central API needs the ss58 of this validator in CENTRAL_VALIDATORS; check the clocks of both';

export type CentralClientOptions = {
  /** Base URL of the central API, including `/api`, without a trailing slash. */
  baseUrl: string;
  signer: Signer;
  clock: Clock;
  random: Random;
  /** Default: fetch. */
  transport?: Transport;
};

/** Status and the beginning of the body. */
type Answer = { status: number; text: string };

/** Calls reject with ApiError `upstream_unavailable` if the central API returns no valid response. */
export function createCentralClient({ baseUrl, ...options }: CentralClientOptions) {
  const { signer, clock } = options;
  const send = createSignedFetch({ ...options, baseUrl, audience: CENTRAL_AUDIENCE });

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
      throw unavailable('does not answer', { cause: error });
    });
  }

  async function read<T>(request: Call, schema: z.ZodType<T>): Promise<T> {
    const { path } = request;
    const response = await call(request);
    if (!response.ok) {
      await response.body?.cancel();
      const isRejected = response.status === 401 || response.status === 403;
      const hint = isRejected ? { hint: REJECTED_REMEDY } : {};

      throw unavailable(`answered ${path} with status ${response.status}`, hint);
    }
    const parsed = schema.safeParse(await response.json().catch(() => undefined));
    if (!parsed.success)
      throw unavailable(`returned an invalid answer to ${path}`, { cause: parsed.error });
    return parsed.data;
  }

  async function submit(request: Call): Promise<Answer> {
    const response = await call(request);
    const text = await response.text().catch(() => '');
    return { status: response.status, text: text.slice(0, MAX_REASON_CHARS) };
  }

  const post = <T>(path: string, body: unknown, schema: z.ZodType<T>): Promise<T> =>
    read({ method: 'POST', path, body: JSON.stringify(body), timeoutMs: CALL_TIMEOUT_MS }, schema);

  return {
    listExecutors: () => post('/executors', {}, ExecutorsToCheck),

    /** Claims renters' reports, and extends the claims on those that this validator examines. */
    claimReports: () => post('/pod-reports', {}, ReportsToExamine),

    /** Posts the signed outcome of an examination. Resolves with any status. */
    postReportOutcome: (id: string, body: string) =>
      submit({
        method: 'POST',
        path: `/pod-reports/${id}/outcome`,
        body,
        timeoutMs: CALL_TIMEOUT_MS,
      }),

    /** Posts a stored health report; retries use the same key. Resolves with any status. */
    postHealth: (body: string, idempotencyKey: string) =>
      submit({
        method: 'POST',
        path: '/executor-health-check',
        body,
        headers: { 'idempotency-key': idempotencyKey },
        timeoutMs: CALL_TIMEOUT_MS,
      }),

    /** Posts weights. Resolves with any status. */
    postWeights: async (payload: LatestSetWeights) =>
      submit({
        method: 'POST',
        path: WEIGHTS_PATH,
        body: JSON.stringify(payload),
        headers: { authorization: await signSetWeights(payload, signer) },
        timeoutMs: WEIGHTS_TIMEOUT_MS,
      }),

    /** Reads the weights that the central API publishes for this validator. */
    readWeights: () =>
      read(
        { method: 'GET', path: WEIGHTS_PATH, timeoutMs: WEIGHTS_TIMEOUT_MS },
        LatestSetWeightsResponse,
      ),
  };
}

/** Legacy headers of this API: a signed timestamp. The canonical request signature also covers the body. */
async function timestampHeaders(signer: Signer, clock: Clock): Promise<Record<string, string>> {
  const timestamp = String(Math.floor(clock.now() / 1000));
  const signature = toHex(await signer.sign(new TextEncoder().encode(timestamp)));
  return { hotkey: signer.hotkey, timestamp, signature };
}

function unavailable(what: string, options: ApiErrorOptions): ApiError {
  return new ApiError('upstream_unavailable', `The central API ${what}`, options);
}
