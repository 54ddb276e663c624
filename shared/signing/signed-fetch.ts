/** fetch with signed requests, for calls to gateway and agent. README.md describes the protocol. */

import type { Clock } from '../runtime/clock.ts';
import type { Random } from '../runtime/random.ts';
import { currentRequestId } from '../runtime/request-context.ts';
import { currentTraceparent, inSpan, type SpanOptions } from '../telemetry/tracing.ts';
import { type OutgoingInit, PLAIN_TRANSPORT, type Transport } from '../tls/transport.ts';
import { MAX_SKEW_MS } from './request-verifier.ts';
import { SIGNATURE_HEADERS, signedHeaders } from './signed-request.ts';
import type { Signer } from './sr25519.ts';

export type SignedFetchOptions = {
  /** Origin and path prefix, no slash at the end. */
  baseUrl: string;
  /** The intended recipient: an executor id, or a validator's ss58 address. */
  audience: string;
  signer: Signer;
  clock: Clock;
  random: Random;
  /** Default: fetch. */
  transport?: Transport;
  /** Verifies each response with its request's nonce; returns the response to use, or rejects. */
  checkResponse?(response: Response, nonce: string): Promise<Response>;
  /**
   * Called with a time of the server's clock: the server's time if it rejects the request because of the
   * time, otherwise the time of signing, which the server has accepted as current.
   */
  onPeerTime?(timeMs: number): void;
};

export type OutgoingRequest = {
  method: string;
  /** Path below baseUrl, beginning with a slash, query included. */
  path: string;
  /** Sent unchanged with a JSON content type. */
  body?: string;
  headers?: Record<string, string>;
  signal?: AbortSignal;
};

/** Rejects like fetch; every HTTP status is a response. */
export type SignedFetch = (request: OutgoingRequest) => Promise<Response>;

/** Limit for error bodies; those of our servers are shorter. */
export const MAX_REFUSAL_BYTES = 16_384;

/** Retries once on `clock_or_restart`, signed with the server's time if that is close to ours. */
export function createSignedFetch(options: SignedFetchOptions): SignedFetch {
  const { clock } = options;
  return (request) =>
    inSpan(spanOptions(options, request), async () => {
      const signedMs = clock.now();
      const first = await send(options, request, signedMs);
      if (first.status < BAD_REQUEST) options.onPeerTime?.(signedMs);
      if (first.status !== 401) return first;
      const errorText = await first
        .clone()
        .text()
        .catch(() => '');
      const refusedMs = serverTimeIn(errorText);
      if (refusedMs !== null) options.onPeerTime?.(refusedMs);
      const serverTimeMs = serverTimeForRetry(errorText, clock.now());
      if (serverTimeMs === null) return first;
      await first.body?.cancel();
      return send(options, request, serverTimeMs);
    });
}

/** Statuses from this one on are refusals and failures, also of proxies. */
const BAD_REQUEST = 400;
const ID = /[0-9a-f]{8}-[0-9a-f-]{27}/g;

/** Names the span by the path without ids. */
function spanOptions(
  { audience, baseUrl }: SignedFetchOptions,
  { method, path }: OutgoingRequest,
): SpanOptions {
  const [place = ''] = path.split('?', 1);
  const attributes = {
    'http.request.method': method,
    'server.address': new URL(baseUrl).host,
    'podwright.audience': audience,
  };
  return { name: `${method} ${place.replaceAll(ID, ':id')}`, kind: 'client', attributes };
}

async function send(
  options: SignedFetchOptions,
  request: OutgoingRequest,
  timestampMs: number,
): Promise<Response> {
  const { transport = PLAIN_TRANSPORT, checkResponse } = options;
  const url = new URL(options.baseUrl + request.path);
  const { method, body = '', signal } = request;
  const signed = await signedHeaders(options, { method, url, body, timestampMs });
  const hasBody = request.body !== undefined;
  const [requestId, traceparent] = [currentRequestId(), currentTraceparent()];
  const init: OutgoingInit = {
    method,
    headers: {
      // The receiver logs the same request id.
      ...(requestId === null ? {} : { 'x-request-id': requestId }),
      ...(traceparent === null ? {} : { traceparent }),
      ...request.headers,
      ...(hasBody ? { 'content-type': 'application/json' } : {}),
      ...signed,
    },
    ...(hasBody ? { body } : {}),
    ...(signal === undefined ? {} : { signal }),
  };
  const response = await transport.fetch(url, init);
  return checkResponse?.(response, signed[SIGNATURE_HEADERS.nonce] ?? '') ?? response;
}

/** Returns the server's time from a `clock_or_restart` error body if it is close to ours, else null. */
export function serverTimeForRetry(errorText: string, nowMs: number): number | null {
  const timeMs = serverTimeIn(errorText);
  return timeMs !== null && Math.abs(timeMs - nowMs) <= 2 * MAX_SKEW_MS ? timeMs : null;
}

/** Returns the server's time from a `clock_or_restart` error body; null for other bodies. */
function serverTimeIn(errorText: string): number | null {
  if (errorText.length > MAX_REFUSAL_BYTES || !errorText.includes('clock_or_restart')) return null;
  const digits = /"server_time_ms":(\d{13})\b/.exec(errorText)?.[1];
  return digits === undefined ? null : Number(digits);
}
