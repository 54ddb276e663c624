/**
 * Identifies a TLS peer and names the reason for a rejection. A pin is the SHA-256 of a public key, not of the
 * certificate, so that a renewed certificate of the same key needs no new pin. Pure.
 */
import { createHash, type KeyObject, type X509Certificate } from 'node:crypto';
import { z } from 'zod';

/** `sha256//` and base64, the format of `curl --pinnedpubkey`. */
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

/** Why a peer is rejected. Checks report these codes and clients depend on them. */
export const PEER_REFUSALS = [
  /** The peer has another key than the pinned one. */
  'TLS_PIN_MISMATCH',
  'TLS_CERTIFICATE_EXPIRED',
  /** The peer's certificate is not signed by a trusted authority, or not for this name. */
  'TLS_UNTRUSTED',
  /** The provider has not enrolled the peer's key, or the enrolment's signature is invalid. */
  'NOT_ENROLLED',
  /** The peer's identity key has changed without a later enrolment. */
  'IDENTITY_CHANGED',
  /** The peer's response has no valid signature. */
  'RESPONSE_UNSIGNED',
] as const;
export type PeerRefusal = (typeof PEER_REFUSALS)[number];

/** A rejected peer. With a `TLS_` reason, nothing of the request was sent. */
export class PeerRefused extends Error {
  override name = 'PeerRefused';
  readonly reason: PeerRefusal;
  constructor(reason: PeerRefusal, message: string, options: ErrorOptions = {}) {
    super(`${reason}: ${message}`, options);
    this.reason = reason;
  }
}

const MAX_DEPTH = 5;

/** Returns the PeerRefused in the error's chain of causes, or null. */
export function findPeerRefusal(error: unknown): PeerRefused | null {
  let at = error;
  for (let depth = 0; depth < MAX_DEPTH && at instanceof Error; depth += 1) {
    if (at instanceof PeerRefused) return at;
    at = at.cause;
  }
  return null;
}
