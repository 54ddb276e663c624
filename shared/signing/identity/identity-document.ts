/** What an agent says of itself to whoever asks (GET /identity): its key, its provider's word for it, its certificate. */
import { z } from 'zod';
import { HostTime } from '../../api/agent/bounds.ts';
import { Pin } from '../../tls/pin.ts';
import { signatureFromHex, toHex } from '../sr25519.ts';
import { Enrolment, PublicKeyHex, SignatureHex } from './enrolment.ts';
import { type Identity, ownPinOf, verifyIdentity } from './identity-key.ts';

/** A certificate of another key than the identity's, vouched for by the identity until it expires. */
export const CertificateNote = z.strictObject({
  pin: Pin,
  expires_ms: HostTime,
  signature: SignatureHex,
});

export const IDENTITY_PATH = '/identity';

export const IdentityDocument = z.object({
  executor_id: z.uuid(),
  public_key: PublicKeyHex,
  /** Null until the provider has enrolled the key. */
  enrolment: Enrolment.nullable(),
  /** Null where the certificate is self-made: its key is the identity's. And without TLS. */
  certificate: CertificateNote.nullable(),
});
export type IdentityDocument = z.output<typeof IdentityDocument>;

type Shown = { pin: Pin; notAfterMs: number };

/** Null where none is needed. */
export function certificateNote(
  identity: Identity,
  executorId: string,
  shown: Shown | null,
): z.output<typeof CertificateNote> | null {
  if (shown === null || shown.pin === ownPinOf(identity.publicKey)) return null;
  const text = noteText(executorId, shown.pin, shown.notAfterMs);
  const signature = toHex(identity.sign(text));
  return { pin: shown.pin, expires_ms: shown.notAfterMs, signature };
}

/** The pin that the agent's listener is to have; null when the document vouches for none now. */
export function pinIn(document: IdentityDocument, nowMs: number): Pin | null {
  const { executor_id: id, public_key: key, certificate: note } = document;
  if (note === null) return ownPinOf(key);
  const signature = signatureFromHex(note.signature);
  if (signature === null || note.expires_ms <= nowMs) return null;
  return verifyIdentity(key, noteText(id, note.pin, note.expires_ms), signature) ? note.pin : null;
}

function noteText(executorId: string, pin: Pin, expiresMs: number): string {
  return ['podwright-tls-v1', executorId, pin, String(expiresMs)].join('\n');
}
