/** The headers that make a request a signed one (validator reference 2.1). */
import { type Random, randomToken } from '../runtime/random.ts';
import { canonicalRequest, SIGNATURE_HEADERS, sha256Hex } from './canonical-request.ts';
import { type Signer, toHex } from './sr25519.ts';

const NONCE_BYTES = 16;

/** Good for one request, and for as long as the server's clock is near `timestampMs`. */
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
