/** Headers of a signed request for `inject`. Every field can differ from what is signed. */
import { randomToken, systemRandom } from '#shared/runtime/random.ts';
import {
  type CanonicalParts,
  canonicalRequest,
  SIGNATURE_HEADERS,
  sha256Hex,
} from '#shared/signing/signed-request.ts';
import { type LocalSigner, toHex } from '#shared/signing/sr25519.ts';

export type SignedParts = {
  method: string;
  url: string;
  body?: string;
  timestampMs: number;
  audience: string;
};

/** Returns the text to sign for `parts`; `changes` replaces fields of it. */
export function partsToSign(
  signer: LocalSigner,
  { method, url, body = '', timestampMs, audience }: SignedParts,
  changes: Partial<CanonicalParts> = {},
): CanonicalParts {
  const [rawPath = '', rawQuery = ''] = url.split('?');
  const nonce = randomToken(systemRandom, 16);
  const bodySha256 = sha256Hex(body);
  const { hotkey } = signer;
  return {
    method,
    rawPath,
    rawQuery,
    bodySha256,
    timestampMs,
    nonce,
    audience,
    signer: hotkey,
    ...changes,
  };
}

/** Headers that carry `parts`, with a signature over `signed` (by default over `parts`). */
export function signatureHeaders(
  signer: Pick<LocalSigner, 'sign'>,
  parts: CanonicalParts,
  signed: CanonicalParts = parts,
): Record<string, string> {
  const message = new TextEncoder().encode(canonicalRequest(signed));
  return {
    [SIGNATURE_HEADERS.signer]: parts.signer,
    [SIGNATURE_HEADERS.timestamp]: String(parts.timestampMs),
    [SIGNATURE_HEADERS.nonce]: parts.nonce,
    [SIGNATURE_HEADERS.audience]: parts.audience,
    [SIGNATURE_HEADERS.bodySha256]: parts.bodySha256,
    [SIGNATURE_HEADERS.signature]: toHex(signer.sign(message)),
  };
}
