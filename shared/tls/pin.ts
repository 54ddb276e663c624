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
