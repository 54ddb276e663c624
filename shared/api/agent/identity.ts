/** What an agent says of itself to whoever asks (GET /identity): its key, its provider's word for it, its certificate. */
import { join } from 'node:path';
import { z } from 'zod';
import { readPrivateFile, replacePrivateFile } from '../../runtime/files.ts';
import type { Random } from '../../runtime/random.ts';
import { publicKeyOf } from '../../signing/hotkey.ts';
import { type Identity, selfSignedPin, verifyIdentity } from '../../signing/identity.ts';
import { type LocalSigner, signatureFromHex, toHex, verifySr25519 } from '../../signing/sr25519.ts';
import { Pin } from '../../tls/peer.ts';
import { HostTime } from './bounds.ts';

export const PublicKeyHex = z.string().regex(/^[0-9a-f]{64}$/, 'Not 64 hex digits');
export const SignatureHex = z.string().regex(/^0x[0-9a-f]{128}$/, 'Not a signature');

/** What the provider signs. Its key is that of the agent's own certificate too: who pins one knows the other. */
export const EnrolmentRequest = z.strictObject({
  executor_id: z.uuid(),
  public_key: PublicKeyHex,
  /** Until when it counts, milliseconds since the epoch. Of two, the later one is in force. */
  expires_ms: HostTime,
});
export type EnrolmentRequest = z.output<typeof EnrolmentRequest>;

export const Enrolment = z.strictObject({
  ...EnrolmentRequest.shape,
  /** Of the provider. No transform: it is sent as well as read. */
  hotkey: z.string().refine((text) => publicKeyOf(text) !== null, 'Not an ss58 address'),
  signature: SignatureHex,
});
export type Enrolment = z.output<typeof Enrolment>;

const DAY_MS = 86_400_000;
/** How long an enrolment counts unless the provider says otherwise, and at most. */
export const ENROLMENT_DAYS = 365;
export const MAX_ENROLMENT_DAYS = 1_825;

export function enrolmentExpiry(days: number, nowMs: number): number {
  return nowMs + days * DAY_MS;
}

/** The signed text: fields separated by LF, none at the end. */
export function enrolmentText(request: EnrolmentRequest): string {
  const { executor_id: id, public_key: key, expires_ms: expiry } = request;
  return ['podwright-enrol-v1', id, key, String(expiry)].join('\n');
}

export function signEnrolment(request: EnrolmentRequest, provider: LocalSigner): Enrolment {
  const signature = toHex(provider.sign(new TextEncoder().encode(enrolmentText(request))));
  return { ...request, hotkey: provider.hotkey, signature };
}

/** Whether the hotkey that it names signed it; its time is the caller's to judge. */
export function isEnrolmentSigned(enrolment: Enrolment): boolean {
  const publicKey = publicKeyOf(enrolment.hotkey);
  const signature = signatureFromHex(enrolment.signature);
  if (publicKey === null || signature === null) return false;
  return verifySr25519(new TextEncoder().encode(enrolmentText(enrolment)), signature, publicKey);
}

export function enrolmentFile(home: string): string {
  return join(home, 'enrolment.json');
}

/** Null where there is none, or nothing that is one. */
export function readEnrolment(home: string): Enrolment | null {
  try {
    const bytes = readPrivateFile(enrolmentFile(home));
    if (bytes === null) return null;
    return Enrolment.parse(JSON.parse(Buffer.from(bytes).toString('utf8')));
  } catch {
    return null;
  }
}

export function writeEnrolment(home: string, enrolment: Enrolment, random: Random): void {
  replacePrivateFile(enrolmentFile(home), `${JSON.stringify(enrolment)}\n`, random);
}

/** A certificate of another key than the identity's, vouched for by the identity until it expires. */
export const CertificateEndorsement = z.strictObject({
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
  certificate: CertificateEndorsement.nullable(),
});
export type IdentityDocument = z.output<typeof IdentityDocument>;

type Shown = { pin: Pin; notAfterMs: number };

/** Null where none is needed. */
export function endorseCertificate(
  identity: Identity,
  executorId: string,
  shown: Shown | null,
): z.output<typeof CertificateEndorsement> | null {
  if (shown === null || shown.pin === selfSignedPin(identity.publicKey)) return null;
  const text = noteText(executorId, shown.pin, shown.notAfterMs);
  const signature = toHex(identity.sign(text));
  return { pin: shown.pin, expires_ms: shown.notAfterMs, signature };
}

/** The pin that the agent's listener is to have; null when the document vouches for none now. */
export function endorsedPin(document: IdentityDocument, nowMs: number): Pin | null {
  const { executor_id: id, public_key: key, certificate: note } = document;
  if (note === null) return selfSignedPin(key);
  const signature = signatureFromHex(note.signature);
  if (signature === null || note.expires_ms <= nowMs) return null;
  return verifyIdentity(key, noteText(id, note.pin, note.expires_ms), signature) ? note.pin : null;
}

function noteText(executorId: string, pin: Pin, expiresMs: number): string {
  return ['podwright-tls-v1', executorId, pin, String(expiresMs)].join('\n');
}
