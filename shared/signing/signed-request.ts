/** The canonical text and headers of a signed request. README.md describes the protocol. */
import { hash } from 'node:crypto';
import { type Random, randomToken } from '../runtime/random.ts';
import { type Signer, toHex } from './sr25519.ts';

export type CanonicalParts = {
  method: string;
  /** Path as on the wire, without the query. */
  rawPath: string;
  /** Query as on the wire, without `?`; empty if there is none. */
  rawQuery: string;
  /** 64 lower-case hex digits. */
  bodySha256: string;
  timestampMs: number;
  /** 16 bytes as base64url, 22 characters. */
  nonce: string;
  /** The intended recipient: an executor id, or a validator's ss58 address. */
  audience: string;
  signer: string;
};

export const SIGNATURE_HEADERS = {
  signer: 'x-podwright-signer',
  timestamp: 'x-podwright-timestamp',
  nonce: 'x-podwright-nonce',
  audience: 'x-podwright-audience',
  bodySha256: 'x-podwright-content-sha256',
  signature: 'x-podwright-signature',
} as const;

/** Returns the fields separated by LF, without a final LF. Its UTF-8 bytes are signed directly. */
export function canonicalRequest(parts: CanonicalParts): string {
  return [
    'podwright-req-v1',
    parts.method.toUpperCase(),
    parts.rawPath,
    canonicalQuery(parts.rawQuery),
    parts.bodySha256,
    String(parts.timestampMs),
    parts.nonce,
    parts.audience,
    parts.signer,
  ].join('\n');
}

/**
 * Sorts the decoded parameters by key, then value, and encodes them by RFC 3986: proxies may reorder the query but not
 * change it.
 */
export function canonicalQuery(rawQuery: string): string {
  if (rawQuery === '') return '';
  return [...new URLSearchParams(rawQuery)]
    .map(([key, value]) => `${rfc3986(key)}=${rfc3986(value)}`)
    .sort()
    .join('&');
}

/** Returns the SHA-256 in lower-case hex. */
export function sha256Hex(bytes: Uint8Array | string): string {
  return hash('sha256', bytes, 'hex');
}

function rfc3986(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

const NONCE_BYTES = 16;

/**
 * Signs a request and returns its headers. They are valid for one request while the server's clock is close to
 * `timestampMs`.
 */
export async function signedHeaders(
  { audience, signer, random }: { audience: string; signer: Signer; random: Random },
  request: { method: string; url: URL; body: string; timestampMs: number },
): Promise<Record<string, string>> {
  const { method, url, timestampMs } = request;
  const parts = {
    method,
    rawPath: url.pathname,
    rawQuery: url.search.slice(1),
    bodySha256: sha256Hex(request.body),
    timestampMs,
    nonce: randomToken(random, NONCE_BYTES),
    audience,
    signer: signer.hotkey,
  };
  const message = new TextEncoder().encode(canonicalRequest(parts));
  return {
    [SIGNATURE_HEADERS.signer]: parts.signer,
    [SIGNATURE_HEADERS.timestamp]: String(timestampMs),
    [SIGNATURE_HEADERS.nonce]: parts.nonce,
    [SIGNATURE_HEADERS.audience]: audience,
    [SIGNATURE_HEADERS.bodySha256]: parts.bodySha256,
    [SIGNATURE_HEADERS.signature]: toHex(await signer.sign(message)),
  };
}
