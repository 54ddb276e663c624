/** fetch with a signed request: how central, validator and tests call the gateway and the agent. */
import type { Clock } from '../clock.ts';
import { type Random, randomToken } from '../random.ts';
import { canonicalRequest, SIGNATURE_HEADERS, sha256Hex } from './canonical-request.ts';
import { MAX_SKEW_MS } from './request-verifier.ts';
import { type Signer, toHex } from './sr25519.ts';

export type SignedFetchOptions = {
  /** Origin and path prefix, no slash at the end. */
  baseUrl: string;
  /** Whom the requests are meant for: an executor id or the ss58 of a validator. */
  audience: string;
  signer: Signer;
  clock: Clock;
  random: Random;
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

const NONCE_BYTES = 16;
const MAX_REFUSAL_BYTES = 16_384;

/** Signs again once when the server says `clock_or_restart`, with the server's time if that is near ours. */
export function createSignedFetch(options: SignedFetchOptions): SignedFetch {
  const { clock } = options;
  return async (request) => {
    const first = await send(options, request, clock.now());
    if (first.status !== 401) return first;
    const serverTimeMs = await serverTimeOf(first.clone());
    if (serverTimeMs === null || Math.abs(serverTimeMs - clock.now()) > 2 * MAX_SKEW_MS)
      return first;
    await first.body?.cancel();
    return send(options, request, serverTimeMs);
  };
}

function send(
  options: SignedFetchOptions,
  request: OutgoingRequest,
  timestampMs: number,
): Promise<Response> {
  const url = new URL(options.baseUrl + request.path);
  const body = request.body ?? '';
  const parts = {
    method: request.method,
    rawPath: url.pathname,
    rawQuery: url.search.slice(1),
    bodySha256: sha256Hex(body),
    timestampMs,
    nonce: randomToken(options.random, NONCE_BYTES),
    audience: options.audience,
    signer: options.signer.hotkey,
  };
  const message = new TextEncoder().encode(canonicalRequest(parts));
  return fetch(url, {
    method: request.method,
    redirect: 'error',
    headers: {
      ...request.headers,
      ...(request.body === undefined ? {} : { 'content-type': 'application/json' }),
      [SIGNATURE_HEADERS.signer]: parts.signer,
      [SIGNATURE_HEADERS.timestamp]: String(timestampMs),
      [SIGNATURE_HEADERS.nonce]: parts.nonce,
      [SIGNATURE_HEADERS.audience]: parts.audience,
      [SIGNATURE_HEADERS.bodySha256]: parts.bodySha256,
      [SIGNATURE_HEADERS.signature]: toHex(options.signer.sign(message)),
    },
    ...(request.body === undefined ? {} : { body: request.body }),
    ...(request.signal === undefined ? {} : { signal: request.signal }),
  });
}

async function serverTimeOf(refusal: Response): Promise<number | null> {
  const text = await refusal.text().catch(() => '');
  if (text.length > MAX_REFUSAL_BYTES || !text.includes('clock_or_restart')) return null;
  const time = /"server_time_ms":(\d{13})\b/.exec(text)?.[1];
  return time === undefined ? null : Number(time);
}
