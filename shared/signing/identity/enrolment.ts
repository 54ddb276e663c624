/** The provider's word that an agent's key is its own: signed once with the hotkey, away from the host (validator reference 3). Pure. */
import { z } from 'zod';
import { HostTime } from '../../api/agent/bounds.ts';
import { publicKeyOf } from '../hotkey.ts';
import { type LocalSigner, signatureFromHex, toHex, verifySr25519 } from '../sr25519.ts';

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

export function expiryIn(days: number, nowMs: number): number {
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
export function isGenuine(enrolment: Enrolment): boolean {
  const publicKey = publicKeyOf(enrolment.hotkey);
  const signature = signatureFromHex(enrolment.signature);
  if (publicKey === null || signature === null) return false;
  return verifySr25519(new TextEncoder().encode(enrolmentText(enrolment)), signature, publicKey);
}
