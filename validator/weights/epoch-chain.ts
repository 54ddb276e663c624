/**
 * Signatures and chain of epochs. Each epoch is signed by the validator and names the id of the previous one; the
 * newest epoch is the head of the chain.
 */

import { canonicalJson } from '#shared/signing/canonical-json.ts';
import { type Hotkey, publicKeyOf } from '#shared/signing/hotkey.ts';
import { sha256Hex } from '#shared/signing/signed-request.ts';
import { type Signer, signatureFromHex, toHex } from '#shared/signing/sr25519.ts';
import { createChainCheck } from '../evidence/chain.ts';
import { isTrustedAt, type TrustedHotkey } from '../keys/trusted-hotkeys.ts';
import { verifySignature } from '../keys/verify-signature.ts';
import type { EpochRow, EvidenceStore } from '../store/tables.ts';
import { epochsInOrder, lastEpoch } from './epoch.store.ts';

/**
 * Returns the chain columns of the epoch after `last`. `pruned` is the newest epoch that is deleted when the new epoch
 * is stored, or null. A new chain starts if the signature of the previous epoch is not trusted, or if an older version
 * stored that epoch.
 */
export function nextLink(
  last: EpochRow | undefined,
  pruned: number | null,
  keys: readonly TrustedHotkey[],
): EpochLink {
  const number = (last?.number ?? 0) + 1;
  const first = last?.first_kept ?? null;
  if (last === undefined || first === null || !isTrustedEpoch(last, keys)) {
    return { previous: null, first_kept: number };
  }
  return { previous: epochIdOf(last), first_kept: Math.max(first, (pruned ?? 0) + 1) };
}

/** Returns true if the epoch is signed with one of `keys` within that key's validity. */
function isTrustedEpoch(row: SignedEpoch, keys: readonly TrustedHotkey[]): boolean {
  return keys.some(
    ({ hotkey }) =>
      isTrustedAt(keys, hotkey, row.computed_ms) && signatureProblem(row, hotkey) === null,
  );
}

/**
 * Lists missing, unsigned and unlinked epochs, from the first that must be retained to the newest. Empty if an older
 * version stored the newest epoch. Deleted epochs after the newest stored one are detected by published-weights.ts.
 */
export async function epochChainProblems(
  store: EvidenceStore,
  keys: readonly TrustedHotkey[],
): Promise<string[]> {
  const newest = await lastEpoch(store);
  if ((newest?.first_kept ?? null) === null) return [];
  const head = chainHeadOf(newest, keys);
  const check = createChainCheck(head);
  const unsigned: string[] = [];
  for await (const row of epochsInOrder(store)) {
    const { number: seq, first_kept } = row;
    const isOlder = first_kept === null && seq < (head?.first_seq ?? 0);
    // The predecessor of the first epoch may have been pruned.
    const previous = seq === head?.first_seq ? undefined : row.previous;
    if (!isOlder) check.add({ id: epochIdOf(row), seq, previous });
    const isInChain = head !== null && seq >= head.first_seq;
    if (isInChain && !isTrustedEpoch(row, keys)) unsigned.push(`epoch ${seq}: ${UNSIGNED}`);
  }
  const problems = check.end(chainHeadOf(await lastEpoch(store), keys));
  const ofChain = problems.map(
    ({ seq, problem }) => `${seq === null ? 'epochs' : `epoch ${seq}`}: ${problem}`,
  );
  return [...unsigned, ...ofChain];
}

const UNSIGNED = 'it is not signed with a key that is trusted at its time';

/** Head of the chain as stated by the newest epoch; null if its signature is not trusted. */
function chainHeadOf(newest: EpochRow | undefined, keys: readonly TrustedHotkey[]) {
  const first_seq = newest?.first_kept ?? null;
  if (newest === undefined || first_seq === null || !isTrustedEpoch(newest, keys)) return null;
  return { first_seq, first_previous: null, last_seq: newest.number, last_id: epochIdOf(newest) };
}

/** Domain separation: the signature is valid for nothing else. */
export const EPOCH_SIGNED_AS = 'podwright-epoch-v1\n';

/** Chain columns of an epoch. */
export type EpochLink = Pick<EpochRow, 'previous' | 'first_kept'>;
/** An epoch before it is signed. Its state is not part of the signature. */
export type UnsignedEpoch = Omit<EpochRow, 'signature'>;

export async function signEpoch(row: UnsignedEpoch, signer: Signer): Promise<EpochRow> {
  return { ...row, signature: toHex(await signer.sign(messageOf(row))) };
}

/** Describes what is wrong with an epoch's signature; null if it is valid. */
export function signatureProblem(row: SignedEpoch, validator: Hotkey): string | null {
  if (row.signature === null)
    return 'it is not signed: an older version or another program stored it';
  const [signature, key] = [signatureFromHex(row.signature), publicKeyOf(validator)];
  const isGood =
    signature !== null && key !== null && verifySignature(messageOf(row), signature, key);
  return isGood ? null : `its signature is not that of ${validator}`;
}

/** Id of an epoch: SHA-256 of its signed content, hex. */
export const epochIdOf = (row: SignedColumns): string => sha256Hex(claimOf(row));

const messageOf = (row: SignedColumns): Uint8Array =>
  new TextEncoder().encode(EPOCH_SIGNED_AS + claimOf(row));

type SignedColumns = Omit<UnsignedEpoch, 'state' | 'input_json' | 'policy_json'>;
export type SignedEpoch = SignedColumns & Pick<EpochRow, 'signature'>;

/** Signed content: the hashes of input, policy, result and payload, and the chain columns if it is part of a chain. */
export function claimOf(row: SignedColumns): string {
  const { number, computed_ms, input_hash, policy_hash, result_hash, payload_json } = row;
  const { previous, first_kept } = row;
  return canonicalJson({
    number,
    computed_ms,
    input_hash,
    policy_hash,
    result_hash,
    payload_hash: sha256Hex(payload_json),
    ...(first_kept === null ? {} : { previous, first_kept }),
  });
}
