/** The signed head of an executor's chain: its first and last document, from which missing documents are detected. */
import { canonicalJson } from '#shared/signing/canonical-json.ts';
import { type Signer, toHex } from '#shared/signing/sr25519.ts';
import { isTrustedAt, type TrustedHotkey } from '../keys/trusted-hotkeys.ts';
import type { EvidenceHeadRow, StoreDb } from '../store/tables.ts';
import { findHead } from './evidence.store.ts';
import { isSignedBy } from './header.ts';

/** Domain separation: the signature is valid for nothing else. */
const SIGNED_AS = 'podwright-evidence-head-v1\n';

/** Content of a head without signer, time and signature. */
export type HeadClaim = Omit<EvidenceHeadRow, 'validator' | 'signed_ms' | 'signature'>;

type UnsignedHead = Omit<EvidenceHeadRow, 'signature'>;

export async function signHead(
  claim: HeadClaim,
  signer: Signer,
  nowMs: number,
): Promise<EvidenceHeadRow> {
  const unsigned = { ...claim, validator: signer.hotkey, signed_ms: nowMs };
  return { ...unsigned, signature: toHex(await signer.sign(messageOf(unsigned))) };
}

/** Returns true if the head is signed with one of `keys` within that key's validity. */
export function isTrustedHead(row: EvidenceHeadRow, keys: readonly TrustedHotkey[]): boolean {
  const { signature, ...unsigned } = row;
  if (!isTrustedAt(keys, row.validator, row.signed_ms)) return false;
  return isSignedBy(row.validator, messageOf(unsigned), signature);
}

/** Before the first drop the text is that of older versions, so that their heads stay valid. */
function messageOf({ dropped_seq, dropped_ms, ...rest }: UnsignedHead): Uint8Array {
  const drop = dropped_seq === null ? {} : { dropped_seq, dropped_ms };
  return new TextEncoder().encode(SIGNED_AS + canonicalJson({ ...rest, ...drop }));
}

/** Head of an executor's chain; null if there is none or its signature is not trusted. */
export async function trustedHead(
  db: StoreDb,
  executorId: string,
  keys: readonly TrustedHotkey[],
): Promise<EvidenceHeadRow | null> {
  const row = await findHead(db, executorId);
  return row !== undefined && isTrustedHead(row, keys) ? row : null;
}

/** Returns a cached `trustedHead` that verifies each head once. */
export function createHeadCache(db: StoreDb, keys: readonly TrustedHotkey[]) {
  const heads = new Map<string, EvidenceHeadRow | null>();
  return async (executorId: string): Promise<EvidenceHeadRow | null> => {
    const known = heads.get(executorId);
    if (known !== undefined) return known;
    const head = await trustedHead(db, executorId, keys);
    heads.set(executorId, head);
    return head;
  };
}

/** Returns true if no document that finished after `startMs`, the start of a cycle, can have been pruned. */
export function mustExist(head: EvidenceHeadRow | null, startMs: number): boolean {
  return head === null || head.pruned_ms === null || startMs > head.pruned_ms;
}
