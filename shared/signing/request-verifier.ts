/** Verifies signed requests for agent and gateway, cheap checks first. README.md describes the protocol. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Clock } from '../runtime/clock.ts';
import { ApiError } from '../runtime/errors.ts';
import { type Hotkey, publicKeyOf } from './hotkey.ts';
import { canonicalRequest, SIGNATURE_HEADERS, sha256Hex } from './signed-request.ts';
import { signatureFromHex, type Verify } from './sr25519.ts';

/** Roles of trusted keys; each route lists the roles that it accepts. */
export const ROLES = ['validator-control', 'validator-read', 'central', 'provider-local'] as const;
export type Role = (typeof ROLES)[number];

/** A key without a window is always valid. Both ends of the window are inclusive, milliseconds since the epoch. */
export type TrustedKey = {
  hotkey: Hotkey;
  /** Its id in the key set. */
  keyId?: string;
  roles: readonly Role[];
  notBeforeMs?: number;
  notAfterMs?: number;
};

/** Largest accepted difference between the signer's clock and ours, in either direction. */
export const MAX_SKEW_MS = 30_000;

/** Why a request was rejected, for logs and metrics. The caller receives only the error code. */
export const AUTH_FAILURES = [
  'headers',
  'skew',
  'before_start',
  'audience',
  'signer',
  /** The key is not yet or no longer valid. */
  'key_window',
  'role',
  'replay',
  'body_hash',
  'signature',
  'cache_full',
] as const;
export type AuthFailure = (typeof AUTH_FAILURES)[number];

export type IncomingRequest = {
  method: string;
  /** Path and query as received. */
  url: string;
  headers: IncomingHttpHeaders;
};

/** A request whose headers are valid; body and signature are not checked yet. */
export type PendingRequest = {
  canonical: string;
  bodySha256: string;
  signature: Uint8Array;
  signer: Hotkey;
  publicKey: Uint8Array;
  nonce: string;
  timestampMs: number;
};

export type RequestVerifierOptions = {
  clock: Clock;
  /** Id of this server: the executor id, or the validator's ss58 address. */
  audience: string;
  keys: readonly TrustedKey[];
  replay: ReplayCache;
  verify: Verify;
  onFailure(reason: AuthFailure, signer: string | undefined): void;
  /**
   * Called with the time of signing of each correctly signed request of a key with one of the PEER_ROLES, also if the
   * request is rejected because of this time.
   */
  onPeerTime?(timestampMs: number): void;
};

/**
 * Roles of the marketplace's processes, whose times are compared with this clock. Times of providers are not.
 */
const PEER_ROLES: readonly Role[] = ['validator-control', 'central'];
/** Shortest time between two checks of a signature that is rejected because of its time. */
const SKEW_CHECK_MS = 5_000;

const utf8 = new TextEncoder();

/**
 * Creates a verifier. It rejects requests that were signed before its creation, because a restart empties the replay
 * cache.
 */
export function createRequestVerifier(options: RequestVerifierOptions) {
  const { clock, audience, replay, verify } = options;
  let keys = byHotkey(options.keys);
  const createdMs = clock.monotonicMs();
  let skewCheckedMs = Number.NEGATIVE_INFINITY;
  /** Latest time of signing by key: a recorded request that is sent again has an earlier time. */
  const latestMs = new Map<string, number>();

  /** Start of this verifier by the present clock, which may have been corrected since. */
  const startedMs = () => clock.now() - (clock.monotonicMs() - createdMs);

  function heard({ hotkey, roles }: TrustedKey, timestampMs: number): void {
    if (timestampMs <= (latestMs.get(hotkey) ?? 0)) return;
    if (!roles.some((role) => PEER_ROLES.includes(role))) return;
    latestMs.set(hotkey, timestampMs);
    options.onPeerTime?.(timestampMs);
  }

  /** Records the time of a request that is rejected because of its time, if the signature is valid. */
  function heardSkew(key: PeerKey, fields: SignatureFields, canonical: string): void {
    const nowMs = clock.monotonicMs();
    if (options.onPeerTime === undefined || nowMs - skewCheckedMs < SKEW_CHECK_MS) return;
    skewCheckedMs = nowMs;
    if (fields.audience !== audience) return;
    if (!verify(utf8.encode(canonical), fields.signature, key.publicKey)) return;
    heard(key, fields.timestampMs);
  }

  function refuse(reason: AuthFailure, signer?: string): ApiError {
    options.onFailure(reason, signer);
    switch (reason) {
      case 'skew':
      case 'before_start':
        return new ApiError('clock_or_restart', 'The signature’s timestamp is not current', {
          details: { server_time_ms: clock.now() },
        });
      case 'role':
        return new ApiError('forbidden', 'The role of this key does not allow this');
      case 'cache_full':
        return new ApiError('auth_busy', 'The replay cache is full');
      default:
        return new ApiError('auth_failed', 'The request is not correctly signed');
    }
  }

  return {
    /** Replaces the trusted keys. Requests whose headers were already checked are still accepted. */
    replaceKeys(trusted: readonly TrustedKey[]): void {
      keys = byHotkey(trusted);
    },

    /** Checks everything that does not need the body. Throws ApiError. */
    checkHeaders(request: IncomingRequest, allowed: readonly Role[]): PendingRequest {
      const read = readHeaders(request.headers);
      const key = read === null ? undefined : keys.get(read.signer);
      if (read === null || (key === undefined && publicKeyOf(read.signer) === null)) {
        throw refuse('headers');
      }
      const [rawPath = '', rawQuery = ''] = splitOnce(request.url, '?');
      const canonical = canonicalRequest({ ...read, method: request.method, rawPath, rawQuery });
      if (Math.abs(clock.now() - read.timestampMs) > MAX_SKEW_MS) {
        if (key !== undefined) heardSkew(key, read, canonical);
        throw refuse('skew', read.signer);
      }
      if (read.timestampMs < startedMs()) throw refuse('before_start', read.signer);
      if (read.audience !== audience) throw refuse('audience', read.signer);
      if (key === undefined) throw refuse('signer', read.signer);
      if (!isKeyValidAt(key, clock.now())) throw refuse('key_window', read.signer);
      if (!key.roles.some((role) => allowed.includes(role))) throw refuse('role', read.signer);
      if (replay.has(read.signer, read.nonce, clock.now())) throw refuse('replay', read.signer);
      const { bodySha256, signature, nonce, timestampMs } = read;
      const { hotkey: signer, publicKey } = key;
      return { canonical, bodySha256, signature, nonce, signer, publicKey, timestampMs };
    },

    /** Checks the body's hash and the signature, then records the nonce. Throws ApiError. */
    checkBody(pending: PendingRequest, rawBody: Uint8Array): { signer: Hotkey } {
      const { signer, publicKey } = pending;
      if (sha256Hex(rawBody) !== pending.bodySha256) throw refuse('body_hash', signer);
      const message = utf8.encode(pending.canonical);
      if (!verify(message, pending.signature, publicKey)) throw refuse('signature', signer);
      const outcome = replay.add(signer, pending.nonce, clock.now());
      if (outcome === 'seen') throw refuse('replay', signer);
      if (outcome === 'full') throw refuse('cache_full', signer);
      const key = keys.get(signer);
      if (key !== undefined) heard(key, pending.timestampMs);
      return { signer };
    },
  };
}

type PeerKey = TrustedKey & { publicKey: Uint8Array };

/** Decoding an address takes much of the time of a verification, so each is decoded once. */
function byHotkey(keys: readonly TrustedKey[]): Map<string, PeerKey> {
  return new Map(keys.map((key) => [key.hotkey as string, withPublicKey(key)]));
}

function withPublicKey(key: TrustedKey): PeerKey {
  const publicKey = publicKeyOf(key.hotkey);
  if (publicKey === null) throw new RangeError(`${key.hotkey} is not a hotkey`);
  return { ...key, publicKey };
}

/** Returns true if the key is valid at that time. */
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

/** Returns null if a header is missing, malformed or repeated: Node joins repeated headers with a comma. */
function readHeaders(headers: IncomingHttpHeaders): SignatureFields | null {
  const text = (name: string) => (typeof headers[name] === 'string' ? headers[name] : '');
  const signer = text(SIGNATURE_HEADERS.signer);
  const timestamp = text(SIGNATURE_HEADERS.timestamp);
  const nonce = text(SIGNATURE_HEADERS.nonce);
  const audience = text(SIGNATURE_HEADERS.audience);
  const bodySha256 = text(SIGNATURE_HEADERS.bodySha256);
  const signature = signatureFromHex(text(SIGNATURE_HEADERS.signature));
  const isWellFormed =
    /^[0-9]{13}$/.test(timestamp) &&
    /^[A-Za-z0-9_-]{22}$/.test(nonce) &&
    /^[A-Za-z0-9-]{1,64}$/.test(audience) &&
    /^[0-9a-f]{64}$/.test(bodySha256);
  if (!isWellFormed || signature === null) return null;
  return { signer, timestampMs: Number(timestamp), nonce, audience, bodySha256, signature };
}

function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at === -1 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}

export type ReplayCache = {
  has(signer: string, nonce: string, nowMs: number): boolean;
  /**
   * Returns `full` if there is no space. Live entries are never evicted: otherwise a flood of requests would make
   * replays possible.
   */
  add(signer: string, nonce: string, nowMs: number): 'added' | 'seen' | 'full';
};

const CAPACITY = 100_000;

/** Remembers each nonce for `ttlMs`, twice the allowed clock skew: for that long the request could be replayed. */
export function createReplayCache(ttlMs: number, capacity: number = CAPACITY): ReplayCache {
  /** Ordered by expiry, because all entries have the same lifetime. */
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
