/** fetch with a signed request: how central, validator and tests call the gateway and the agent. */

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
  /** Whom the requests are meant for: an executor id or the ss58 of a validator. */
  audience: string;
  signer: Signer;
  clock: Clock;
  random: Random;
  /** As fetch itself does when absent. */
  transport?: Transport;
  /** Given each answer and its request's nonce; returns the answer to go on with, or rejects. */
  checkResponse?(answer: Response, nonce: string): Promise<Response>;
};

export type OutgoingRequest = {
  method: string;
  /** Below baseUrl, beginning with a slash, query included. */
  path: string;
  /** Sent as it is with a JSON content type. */
  body?: string;
  headers?: Record<string, string>;
  signal?: AbortSignal;
};

/** Rejects as fetch does; any HTTP status is a response. */
export type SignedFetch = (request: OutgoingRequest) => Promise<Response>;

/** A longer answer is no refusal of ours. */
export const MAX_REFUSAL_BYTES = 16_384;

/** Signs again once when the server says `clock_or_restart`, with the server's time if that is near ours. */
export function createSignedFetch(options: SignedFetchOptions): SignedFetch {
  const { clock } = options;
  return (request) =>
    inSpan(spanWishOf(options, request), async () => {
      const first = await send(options, request, clock.now());
      if (first.status !== 401) return first;
      const refusal = await first
        .clone()
        .text()
        .catch(() => '');
      const serverTimeMs = serverTimeForRetry(refusal, clock.now());
      if (serverTimeMs === null) return first;
      await first.body?.cancel();
      return send(options, request, serverTimeMs);
    });
}

/** Ids are no part of a name. */
const ID = /[0-9a-f]{8}-[0-9a-f-]{27}/g;

function spanWishOf(
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
      // Whoever is asked names the same request in its log.
      ...(requestId === null ? {} : { 'x-request-id': requestId }),
      ...(traceparent === null ? {} : { traceparent }),
      ...request.headers,
      ...(hasBody ? { 'content-type': 'application/json' } : {}),
      ...signed,
    },
    ...(hasBody ? { body } : {}),
    ...(signal === undefined ? {} : { signal }),
  };
  const answer = await transport.fetch(url, init);
  return checkResponse?.(answer, signed[SIGNATURE_HEADERS.nonce] ?? '') ?? answer;
}

/** The server's time out of a refusal that asks for another signature, if it is near ours; else null. */
export function serverTimeForRetry(refusal: string, nowMs: number): number | null {
  if (refusal.length > MAX_REFUSAL_BYTES || !refusal.includes('clock_or_restart')) return null;
  const time = Number(/"server_time_ms":(\d{13})\b/.exec(refusal)?.[1]);
  return Math.abs(time - nowMs) <= 2 * MAX_SKEW_MS ? time : null;
}
