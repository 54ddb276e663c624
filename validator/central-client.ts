/** Typed caller of the central API's validator routes; embedded or remote, it is the same HTTP (contract 11). */
import type { z } from 'zod';
import {
  type ExecutorHealthCheckRequest,
  ExecutorHealthCheckResponse,
  ExecutorsToCheck,
} from '#shared/central-api/validator-routes.ts';
import type { Clock } from '#shared/clock.ts';
import { ApiError } from '#shared/errors.ts';
import type { Random } from '#shared/random.ts';
import { createSignedFetch } from '#shared/signing/signed-fetch.ts';
import { type Signer, toHex } from '#shared/signing/sr25519.ts';

export type CentralClient = ReturnType<typeof createCentralClient>;

const CALL_TIMEOUT_MS = 25_000;
/** The audience that the central API answers to. */
export const CENTRAL_AUDIENCE = 'central';

export type CentralClientOptions = {
  /** With `/api`, without a slash at the end. */
  baseUrl: string;
  signer: Signer;
  clock: Clock;
  random: Random;
};

/** Calls reject with ApiError `upstream_unavailable` when there is no usable answer. */
export function createCentralClient({ baseUrl, signer, clock, random }: CentralClientOptions) {
  const send = createSignedFetch({ baseUrl, audience: CENTRAL_AUDIENCE, signer, clock, random });

  async function post<T>(path: string, body: unknown, schema: z.ZodType<T>): Promise<T> {
    const response = await send({
      method: 'POST',
      path: `/validator/${signer.hotkey}${path}`,
      body: JSON.stringify(body),
      headers: timestampHeaders(signer, clock),
      signal: clock.deadline(CALL_TIMEOUT_MS),
    }).catch((error: unknown) => {
      throw unavailable('does not answer', error);
    });
    if (!response.ok) {
      await response.body?.cancel();
      throw unavailable(`answered ${path} with status ${response.status}`);
    }
    const parsed = schema.safeParse(await response.json().catch(() => undefined));
    if (!parsed.success) throw unavailable(`answered ${path} in an unknown form`, parsed.error);
    return parsed.data;
  }

  return {
    listExecutors: () => post('/executors', {}, ExecutorsToCheck),
    reportHealth: (request: z.input<typeof ExecutorHealthCheckRequest>) =>
      post('/executor-health-check', request, ExecutorHealthCheckResponse),
  };
}

/** What this market's API has always asked of validators; the canonical set beside it covers the body. */
function timestampHeaders(signer: Signer, clock: Clock): Record<string, string> {
  const timestamp = String(Math.floor(clock.now() / 1000));
  const signature = toHex(signer.sign(new TextEncoder().encode(timestamp)));
  return { hotkey: signer.hotkey, timestamp, signature };
}

function unavailable(what: string, cause?: unknown): ApiError {
  return new ApiError('upstream_unavailable', `The central API ${what}`, { cause });
}
