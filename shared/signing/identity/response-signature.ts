/** The signature under an answer: over status, body and the nonce of the request (validator reference 2.4). Pure. */
import { sha256Hex } from '../canonical-request.ts';
import { signatureFromHex, toHex } from '../sr25519.ts';
import { type Identity, verifyIdentity } from './identity-key.ts';

export const RESPONSE_SIGNATURE_HEADER = 'x-podwright-response-signature';

export type AnswerParts = {
  status: number;
  /** As sent; empty when there is none. */
  body: Uint8Array | string;
  /** The request's: an answer fits no other. */
  nonce: string;
  executorId: string;
};

export function signAnswer(identity: Identity, parts: AnswerParts): string {
  return toHex(identity.sign(answerText(parts)));
}

/** `signature` as the header had it; false for anything but a valid one. */
export function isAnswerSigned(
  publicKey: string,
  parts: AnswerParts,
  signature: string | null,
): boolean {
  const bytes = signatureFromHex(signature ?? '');
  return bytes !== null && verifyIdentity(publicKey, answerText(parts), bytes);
}

function answerText({ status, body, nonce, executorId }: AnswerParts): string {
  return ['podwright-res-v1', String(status), sha256Hex(body), nonce, executorId].join('\n');
}
