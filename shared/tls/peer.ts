/**
 * What a certificate is known by where no authority vouches for it: the SHA-256 of its public key, not of the
 * certificate, so that a renewed one of the same key needs no new pin. Pure.
 */
import { createHash, type KeyObject, type X509Certificate } from 'node:crypto';
import { z } from 'zod';

/** `sha256//` and base64, as `curl --pinnedpubkey` takes it. */
export const Pin = z
  .string()
  .regex(/^sha256\/\/[A-Za-z0-9+/]{43}=$/, 'Not a pin like sha256//…=')
  .brand<'Pin'>();
export type Pin = z.output<typeof Pin>;

export function pinOf(publicKey: KeyObject): Pin {
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  return `sha256//${createHash('sha256').update(spki).digest('base64')}` as Pin;
}

export function pinOfCertificate(certificate: X509Certificate): Pin {
  return pinOf(certificate.publicKey);
}

/** Why we would not speak to whoever answered at an address, or believe it. */

/** Closed and stable: checks report them, and clients key on them. */
export const PEER_REFUSALS = [
  /** It has another key than the one it is known by. */
  'TLS_PIN_MISMATCH',
  'TLS_CERTIFICATE_EXPIRED',
  /** No authority of ours vouches for it, or not for this name. */
  'TLS_UNTRUSTED',
  /** No valid signature of its provider over its key. */
  'NOT_ENROLLED',
  /** It has another identity key than before, and no later enrolment. */
  'IDENTITY_CHANGED',
  /** Its answer has no valid signature. */
  'RESPONSE_UNSIGNED',
] as const;
export type PeerRefusal = (typeof PEER_REFUSALS)[number];

/** With a `TLS_` reason nothing of the request was sent. */
export class PeerRefused extends Error {
  override name = 'PeerRefused';
  readonly reason: PeerRefusal;
  constructor(reason: PeerRefusal, message: string, options: ErrorOptions = {}) {
    super(`${reason}: ${message}`, options);
    this.reason = reason;
  }
}

const MAX_DEPTH = 5;

/** The refusal that `error` is or came from, or null. */
export function findPeerRefusal(error: unknown): PeerRefused | null {
  let at = error;
  for (let depth = 0; depth < MAX_DEPTH && at instanceof Error; depth += 1) {
    if (at instanceof PeerRefused) return at;
    at = at.cause;
  }
  return null;
}
