/**
 * The signed header of a document. It names the document by its hash, so that a check run whose document was dropped can
 * still be verified.
 */
import { naiveUtc } from '#shared/runtime/clock.ts';
import { canonicalJson } from '#shared/signing/canonical-json.ts';
import { type Hotkey, publicKeyOf } from '#shared/signing/hotkey.ts';
import { signatureFromHex } from '#shared/signing/sr25519.ts';
import { isTrustedAt, type TrustedHotkey } from '../keys/trusted-hotkeys.ts';
import { verifySignature } from '../keys/verify-signature.ts';
import type { CycleVerdict, EvidenceHeadRow, EvidenceRow } from '../store/tables.ts';

/** Domain separation: the signature is valid for nothing else. */
export const HEADER_SIGNED_AS = 'podwright-evidence-v2\n';

export type EvidenceHeader = {
  v: 2;
  /** SHA-256 of the document, hex. */
  id: string;
  executor_id: string;
  seq: number;
  /** Id of the executor's previous document; null for the first. */
  previous: string | null;
  validator: Hotkey;
  finished_at: number;
  verdict: CycleVerdict;
};

/** Problem of a signature that does not match. */
export const NOT_SIGNED = 'its signature is not valid';

/** Header of a stored row; null for a row of an older version, whose signature covers the document. */
export function headerIn(row: EvidenceRow): EvidenceHeader | null {
  const { id, executor_id, seq, previous, validator, finished_ms: finished_at, verdict } = row;
  if (validator === null) return null;
  return { v: 2, id, executor_id, seq, previous, validator, finished_at, verdict };
}

export const headerMessage = (header: EvidenceHeader): Uint8Array =>
  new TextEncoder().encode(HEADER_SIGNED_AS + canonicalJson(header));

/** Verifies a signature in hex. */
export function isSignedBy(signer: Hotkey, message: Uint8Array, signature: string): boolean {
  const [key, bytes] = [publicKeyOf(signer), signatureFromHex(signature)];
  return key !== null && bytes !== null && verifySignature(message, bytes, key);
}

export const untrusted = (validator: Hotkey, atMs: number): string =>
  `it is signed by ${validator}, which is not trusted at ${naiveUtc(atMs)}Z`;

/**
 * Verifies a row whose document is absent. Returns null if the document was dropped: the signed header states a passed
 * check, and `head`, the trusted head of the chain, permits the drop. Otherwise returns the problem.
 */
export function dropProblem(
  row: EvidenceRow,
  head: EvidenceHeadRow | null,
  keys: readonly TrustedHotkey[],
): string | null {
  const header = headerIn(row);
  if (header === null) return LOST;
  const { validator, finished_at: finishedMs, verdict, seq } = header;
  if (!isTrustedAt(keys, validator, finishedMs)) return untrusted(validator, finishedMs);
  if (!isSignedBy(validator, headerMessage(header), row.signature)) return NOT_SIGNED;
  if (verdict !== 'ok')
    return `${LOST}: it is evidence of a check that did not pass, which is never dropped`;
  if (isDropped(seq, head)) return null;
  return `${LOST}: the head of its chain does not state that it was dropped`;
}

const LOST = 'its document is missing';

function isDropped(seq: number, head: EvidenceHeadRow | null): boolean {
  return head !== null && head.dropped_seq !== null && seq <= head.dropped_seq;
}
