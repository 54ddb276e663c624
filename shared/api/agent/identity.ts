/**
 * An agent's identity document (GET /identity): its key, the provider's enrolment of the key, and its TLS certificate.
 * The provider signs an enrolment once with its hotkey, which need not be on the agent's host.
 */
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

/** The content that the provider signs. `public_key` is also the key of the agent's self-signed certificate. */
export const EnrolmentRequest = z.strictObject({
  executor_id: z.uuid(),
  public_key: PublicKeyHex,
  /** End of validity, milliseconds since the epoch. The enrolment with the latest end replaces the others. */
  expires_ms: HostTime,
});
export type EnrolmentRequest = z.output<typeof EnrolmentRequest>;

export const Enrolment = z.strictObject({
  ...EnrolmentRequest.shape,
  /** The provider's hotkey. Not a transform, because the schema also serializes. */
  hotkey: z.string().refine((text) => publicKeyOf(text) !== null, 'Not an ss58 address'),
  signature: SignatureHex,
});
export type Enrolment = z.output<typeof Enrolment>;

const DAY_MS = 86_400_000;
/** Default and maximum validity of an enrolment. */
export const ENROLMENT_DAYS = 365;
export const MAX_ENROLMENT_DAYS = 1_825;

/** Parses one line of JSON that a person pasted. Throws an error that names each invalid field. */
export function parsePastedLine<T>(schema: z.ZodType<T>, line: string, what: string): T {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (cause) {
    throw new Error(`the ${what} must be one line of JSON, in quotes`, { cause });
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(
    ({ path, message }) => `${path.join('.') || what}: ${message}`,
  );
  throw new Error(problems.join('; '));
}

export function enrolmentExpiry(days: number, nowMs: number): number {
  return nowMs + days * DAY_MS;
}

/** Returns the signed text: fields separated by LF, without a final LF. */
export function enrolmentText(request: EnrolmentRequest): string {
  const { executor_id: id, public_key: key, expires_ms: expiry } = request;
  return ['podwright-enrol-v1', id, key, String(expiry)].join('\n');
}

export function signEnrolment(request: EnrolmentRequest, provider: LocalSigner): Enrolment {
  const signature = toHex(provider.sign(new TextEncoder().encode(enrolmentText(request))));
  return { ...request, hotkey: provider.hotkey, signature };
}

/** Returns true if the enrolment's hotkey signed it. The caller checks its expiry. */
export function isEnrolmentSigned(enrolment: Enrolment): boolean {
  const publicKey = publicKeyOf(enrolment.hotkey);
  const signature = signatureFromHex(enrolment.signature);
  if (publicKey === null || signature === null) return false;
  return verifySr25519(new TextEncoder().encode(enrolmentText(enrolment)), signature, publicKey);
}

export function enrolmentFile(home: string): string {
  return join(home, 'enrolment.json');
}

/** Returns the enrolment in the file; null if there is no valid one. */
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

/** Signature by the identity key for a TLS certificate of another key, valid until the certificate expires. */
export const CertificateEndorsement = z.strictObject({
  pin: Pin,
  expires_ms: HostTime,
  signature: SignatureHex,
});

export const IDENTITY_PATH = '/identity';

export const IdentityDocument = z.object({
  executor_id: z.uuid(),
  public_key: PublicKeyHex,
  /** Null if the provider has not enrolled the key yet. */
  enrolment: Enrolment.nullable(),
  /** Null without TLS, and for a self-signed certificate, whose key is the identity's. */
  certificate: CertificateEndorsement.nullable(),
});
export type IdentityDocument = z.output<typeof IdentityDocument>;

type PresentedCertificate = { pin: Pin; notAfterMs: number };

/** Signs the certificate that the listener presents. Returns null if no signature is needed. */
export function endorseCertificate(
  identity: Identity,
  executorId: string,
  presented: PresentedCertificate | null,
): z.output<typeof CertificateEndorsement> | null {
  if (presented === null || presented.pin === selfSignedPin(identity.publicKey)) return null;
  const text = endorsementText(executorId, presented.pin, presented.notAfterMs);
  const signature = toHex(identity.sign(text));
  return { pin: presented.pin, expires_ms: presented.notAfterMs, signature };
}

/** Returns the pin that the agent's listener must have. Null if the document contains no valid endorsement. */
export function endorsedPin(document: IdentityDocument, nowMs: number): Pin | null {
  const { executor_id: id, public_key: key, certificate: endorsement } = document;
  if (endorsement === null) return selfSignedPin(key);
  const signature = signatureFromHex(endorsement.signature);
  if (signature === null || endorsement.expires_ms <= nowMs) return null;
  return verifyIdentity(
    key,
    endorsementText(id, endorsement.pin, endorsement.expires_ms),
    signature,
  )
    ? endorsement.pin
    : null;
}

function endorsementText(executorId: string, pin: Pin, expiresMs: number): string {
  return ['podwright-tls-v1', executorId, pin, String(expiresMs)].join('\n');
}
