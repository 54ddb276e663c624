/** The signed ends of an executor's chain: how many documents there have to be, and which is the last (validator reference 7). */
import { canonicalJson } from '#shared/signing/canonical-json.ts';
import { publicKeyOf } from '#shared/signing/hotkey.ts';
import { type Signer, signatureFromHex, toHex, verifySr25519 } from '#shared/signing/sr25519.ts';
import { countsAt, type TrustedHotkey } from '../keys/trusted-hotkeys.ts';
import type { EvidenceHeadRow, StoreDb } from '../store/tables.ts';
import { findHead } from './evidence.store.ts';

/** So that a signature can mean nothing else. */
const SIGNED_AS = 'podwright-evidence-head-v1\n';

/** What a head says; who says it, and when, is the signer's to add. */
export type HeadClaim = Omit<EvidenceHeadRow, 'validator' | 'signed_ms' | 'signature'>;

/** The head as `signer` vouches for it now. */
export async function signHead(
  claim: HeadClaim,
  signer: Signer,
  nowMs: number,
): Promise<EvidenceHeadRow> {
  const unsigned = { ...claim, validator: signer.hotkey, signed_ms: nowMs };
  return { ...unsigned, signature: toHex(await signer.sign(messageOf(unsigned))) };
}

/** Whether it is signed with one of `keys` in that key's time. */
export function isTrustedHead(row: EvidenceHeadRow, keys: readonly TrustedHotkey[]): boolean {
  const { signature, ...unsigned } = row;
  if (!countsAt(keys, row.validator, row.signed_ms)) return false;
  const [bytes, key] = [signatureFromHex(signature), publicKeyOf(row.validator)];
  return bytes !== null && key !== null && verifySr25519(messageOf(unsigned), bytes, key);
}

function messageOf(unsigned: Omit<EvidenceHeadRow, 'signature'>): Uint8Array {
  return new TextEncoder().encode(SIGNED_AS + canonicalJson(unsigned));
}

// MERGED validator/evidence/chain-head.ts: What of an executor's evidence has to be there, by the signed head of its chain.
/** Null where there is none, or none that is signed with one of `keys`. */
export async function trustedHead(
  db: StoreDb,
  executorId: string,
  keys: readonly TrustedHotkey[],
): Promise<EvidenceHeadRow | null> {
  const row = await findHead(db, executorId);
  return row !== undefined && isTrustedHead(row, keys) ? row : null;
}

/** The same of many, each looked at once. */
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

/** Whether a document that was finished in a cycle from `startMs` on has to be there still. */
export function mustExist(head: EvidenceHeadRow | null, startMs: number): boolean {
  return head === null || head.pruned_ms === null || startMs > head.pruned_ms;
}
