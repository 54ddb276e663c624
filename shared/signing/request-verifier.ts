/** Checks signed requests in the order cheap to dear (validator reference 2.2). Shared by agent and gateway. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Clock } from '../runtime/clock.ts';
import { ApiError } from '../runtime/errors.ts';
import { type Hotkey, publicKeyOf } from './hotkey.ts';
import { canonicalRequest, SIGNATURE_HEADERS, sha256Hex } from './signed-request.ts';
import { signatureFromHex, type Verify } from './sr25519.ts';

/** What a trusted key may do; a route names the roles it admits. */
export const ROLES = ['validator-control', 'validator-read', 'central', 'provider-local'] as const;
export type Role = (typeof ROLES)[number];

/** Without a window it counts at any time; both ends are milliseconds since the epoch, and in it. */
export type TrustedKey = {
  hotkey: Hotkey;
  /** What its key set calls it. */
  keyId?: string;
  roles: readonly Role[];
  notBeforeMs?: number;
  notAfterMs?: number;
};

/** Largest difference between the signer's clock and ours, either way. */
export const MAX_SKEW_MS = 30_000;

/** Why a request was refused: for the log and the metric, never for the caller. */
export type AuthFailure =
  | 'headers'
  | 'skew'
  | 'before_start'
  | 'audience'
  | 'signer'
  /** It is not yet, or no longer, one of our keys. */
  | 'key_window'
  | 'role'
  | 'replay'
  | 'body_hash'
  | 'signature'
  | 'cache_full';

export type IncomingRequest = {
  method: string;
  /** Path and query as received. */
  url: string;
  headers: IncomingHttpHeaders;
};

/** A request whose headers are in order; its body and signature are still to be checked. */
export type PendingRequest = {
  canonical: string;
  bodySha256: string;
  signature: Uint8Array;
  signer: Hotkey;
  publicKey: Uint8Array;
  nonce: string;
};

export type RequestVerifierOptions = {
  clock: Clock;
  /** Who we are: the executor id, or the ss58 of the validator. */
  audience: string;
  keys: readonly TrustedKey[];
  replay: ReplayCache;
  verify: Verify;
  onFailure(reason: AuthFailure, signer: string | undefined): void;
};

const utf8 = new TextEncoder();

/** Requests signed before this verifier was made are refused, so a restart forgets no nonce. */
export function createRequestVerifier(options: RequestVerifierOptions) {
  const { clock, audience, replay, verify } = options;
  // Addresses are decoded once: that takes a good part of what checking a signature does.
  const keys = new Map(options.keys.map((key) => [key.hotkey as string, decoded(key)]));
  const startedMs = clock.now();

  function refuse(reason: AuthFailure, signer?: string): ApiError {
    options.onFailure(reason, signer);
    switch (reason) {
      case 'skew':
      case 'before_start':
        return new ApiError('clock_or_restart', 'The request was not signed just now', {
          details: { server_time_ms: clock.now() },
        });
      case 'role':
        return new ApiError('forbidden', 'This key may not do this');
      case 'cache_full':
        return new ApiError('auth_busy', 'Too many requests to remember');
      default:
        return new ApiError('auth_failed', 'The request is not signed as required');
    }
  }

  return {
    /** Steps 1-6: everything that needs no body. Throws ApiError. */
    checkHeaders(request: IncomingRequest, allowed: readonly Role[]): PendingRequest {
      const read = readHeaders(request.headers);
      const key = read === null ? undefined : keys.get(read.signer);
      if (read === null || (key === undefined && publicKeyOf(read.signer) === null)) {
        throw refuse('headers');
      }
      if (Math.abs(clock.now() - read.timestampMs) > MAX_SKEW_MS) throw refuse('skew', read.signer);
      if (read.timestampMs < startedMs) throw refuse('before_start', read.signer);
      if (read.audience !== audience) throw refuse('audience', read.signer);
      if (key === undefined) throw refuse('signer', read.signer);
      if (!isKeyValidAt(key, clock.now())) throw refuse('key_window', read.signer);
      if (!key.roles.some((role) => allowed.includes(role))) throw refuse('role', read.signer);
      if (replay.has(read.signer, read.nonce, clock.now())) throw refuse('replay', read.signer);
      const [rawPath = '', rawQuery = ''] = splitOnce(request.url, '?');
      const canonical = canonicalRequest({ ...read, method: request.method, rawPath, rawQuery });
      const { bodySha256, signature, nonce } = read;
      const { hotkey: signer, publicKey } = key;
      return { canonical, bodySha256, signature, nonce, signer, publicKey };
    },

    /** Steps 7-9: the body's hash, the signature, then the nonce. Throws ApiError. */
    checkBody(pending: PendingRequest, rawBody: Uint8Array): { signer: Hotkey } {
      const { signer, publicKey } = pending;
      if (sha256Hex(rawBody) !== pending.bodySha256) throw refuse('body_hash', signer);
      const message = utf8.encode(pending.canonical);
      if (!verify(message, pending.signature, publicKey)) throw refuse('signature', signer);
      const outcome = replay.add(signer, pending.nonce, clock.now());
      if (outcome === 'seen') throw refuse('replay', signer);
      if (outcome === 'full') throw refuse('cache_full', signer);
      return { signer };
    },
  };
}

function decoded(key: TrustedKey): TrustedKey & { publicKey: Uint8Array } {
  const publicKey = publicKeyOf(key.hotkey);
  if (publicKey === null) throw new RangeError(`${key.hotkey} is no hotkey`);
  return { ...key, publicKey };
}

/** Whether a key counts at that time. */
export function isKeyValidAt(
  { notBeforeMs, notAfterMs }: Pick<TrustedKey, 'notBeforeMs' | 'notAfterMs'>,
  nowMs: number,
): boolean {
  return nowMs >= (notBeforeMs ?? nowMs) && nowMs <= (notAfterMs ?? nowMs);
}

type SignatureFields = {
  signer: string;
  timestampMs: number;
  nonce: string;
  audience: string;
  bodySha256: string;
  signature: Uint8Array;
};

/** Node joins repeated headers with a comma, which none of these shapes allows: each comes once. */
function readHeaders(headers: IncomingHttpHeaders): SignatureFields | null {
  const text = (name: string) => (typeof headers[name] === 'string' ? headers[name] : '');
  const signer = text(SIGNATURE_HEADERS.signer);
  const timestamp = text(SIGNATURE_HEADERS.timestamp);
  const nonce = text(SIGNATURE_HEADERS.nonce);
  const audience = text(SIGNATURE_HEADERS.audience);
  const bodySha256 = text(SIGNATURE_HEADERS.bodySha256);
  const signature = signatureFromHex(text(SIGNATURE_HEADERS.signature));
  const shaped =
    /^[0-9]{13}$/.test(timestamp) &&
    /^[A-Za-z0-9_-]{22}$/.test(nonce) &&
    /^[A-Za-z0-9-]{1,64}$/.test(audience) &&
    /^[0-9a-f]{64}$/.test(bodySha256);
  if (!shaped || signature === null) return null;
  return { signer, timestampMs: Number(timestamp), nonce, audience, bodySha256, signature };
}

function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at === -1 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}

/** Nonces seen, each until no request bearing it could still be in its time window (validator reference 2.3). */

export type ReplayCache = {
  has(signer: string, nonce: string, nowMs: number): boolean;
  /** `full` refuses: a live entry is never evicted, or a flood would make replays possible. */
  add(signer: string, nonce: string, nowMs: number): 'added' | 'seen' | 'full';
};

const CAPACITY = 100_000;

/** `ttlMs` is twice the allowed clock skew. */
export function createReplayCache(ttlMs: number, capacity: number = CAPACITY): ReplayCache {
  /** Insertion order is expiry order, because every entry lives equally long. */
  const expiries = new Map<string, number>();

  function dropExpired(nowMs: number): void {
    for (const [key, expiresMs] of expiries) {
      if (expiresMs > nowMs) return;
      expiries.delete(key);
    }
  }

  return {
    has(signer, nonce, nowMs) {
      const expiresMs = expiries.get(`${signer} ${nonce}`);
      return expiresMs !== undefined && expiresMs > nowMs;
    },
    add(signer, nonce, nowMs) {
      dropExpired(nowMs);
      const key = `${signer} ${nonce}`;
      if (expiries.has(key)) return 'seen';
      if (expiries.size >= capacity) return 'full';
      expiries.set(key, nowMs + ttlMs);
      return 'added';
    },
  };
}
