/** Epochs are a chain as the documents of evidence are: each names the one before, and the newest is the head of all (validator reference 7). */

import { canonicalJson } from '#shared/signing/canonical-json.ts';
import { type Hotkey, publicKeyOf } from '#shared/signing/hotkey.ts';
import { sha256Hex } from '#shared/signing/signed-request.ts';
import { type Signer, signatureFromHex, toHex, verifySr25519 } from '#shared/signing/sr25519.ts';
import { createChainCheck } from '../evidence/chain.ts';
import { countsAt, type TrustedHotkey } from '../keys/trusted-hotkeys.ts';
import type { EpochRow, EvidenceStore } from '../store/tables.ts';
import { epochsInOrder, lastEpoch } from './epoch.store.ts';

/**
 * What the epoch after `last` names; `pruned`: the newest that goes when it comes, null for none. One whose signature
 * does not count, or that is of an older program, is not gone on from: the chain begins anew, and shows it.
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

/** Whether it is signed with one of `keys` in that key's time. */
function isTrustedEpoch(row: SignedEpoch, keys: readonly TrustedHotkey[]): boolean {
  return keys.some(
    ({ hotkey }) =>
      countsAt(keys, hotkey, row.computed_ms) && signatureProblem(row, hotkey) === null,
  );
}

/**
 * Which epochs are missing, are not signed as they are, or do not follow the one before, from the first that has to be kept to the newest; nothing
 * where that is of an older program. Whether newer ones were there no ledger can tell.
 */
export async function epochChainProblems(
  store: EvidenceStore,
  keys: readonly TrustedHotkey[],
): Promise<string[]> {
  const newest = await lastEpoch(store);
  if ((newest?.first_kept ?? null) === null) return [];
  const head = headIn(newest, keys);
  const check = createChainCheck(head);
  const unsigned: string[] = [];
  for await (const row of epochsInOrder(store)) {
    const { number: seq, first_kept } = row;
    const isOlder = first_kept === null && seq < (head?.first_seq ?? 0);
    // What the first names may be gone, and those of older programs name nothing.
    const previous = seq === head?.first_seq ? undefined : row.previous;
    if (!isOlder) check.add({ id: epochIdOf(row), seq, previous });
    const isInChain = head !== null && seq >= head.first_seq;
    if (isInChain && !isTrustedEpoch(row, keys)) unsigned.push(`epoch ${seq}: ${UNSIGNED}`);
  }
  const problems = check.end(headIn(await lastEpoch(store), keys));
  const ofChain = problems.map(
    ({ seq, problem }) => `${seq === null ? 'epochs' : `epoch ${seq}`}: ${problem}`,
  );
  return [...unsigned, ...ofChain];
}

const UNSIGNED = 'as it is, it is not signed with a key that counts at its time';

/** What the newest epoch says of the chain; null where nobody vouches for it. */
function headIn(newest: EpochRow | undefined, keys: readonly TrustedHotkey[]) {
  const first_seq = newest?.first_kept ?? null;
  if (newest === undefined || first_seq === null || !isTrustedEpoch(newest, keys)) return null;
  return { first_seq, first_previous: null, last_seq: newest.number, last_id: epochIdOf(newest) };
}

// MERGED validator/weights/epoch-chain.ts: The validator's signature under an epoch: that these are its weights, of this input, and nobody else's rows (validator reference 7).
/** So that a signature can mean nothing else. */
const SIGNED_AS = 'podwright-epoch-v1\n';

/** Where it stands in the chain. */
export type EpochLink = Pick<EpochRow, 'previous' | 'first_kept'>;
/** As it is computed; what becomes of it at the central API is not signed. */
export type UnsignedEpoch = Omit<EpochRow, 'signature'>;

/** The epoch as `signer` vouches for it. */
export async function signEpoch(row: UnsignedEpoch, signer: Signer): Promise<EpochRow> {
  return { ...row, signature: toHex(await signer.sign(messageOf(row))) };
}

/** What is wrong with the signature of an epoch of that validator's; null where nothing is. */
export function signatureProblem(row: SignedEpoch, validator: Hotkey): string | null {
  if (row.signature === null) return 'it is not signed: it is of an older program, or of nobody';
  const [signature, key] = [signatureFromHex(row.signature), publicKeyOf(validator)];
  const isGood =
    signature !== null && key !== null && verifySr25519(messageOf(row), signature, key);
  return isGood ? null : `its signature is not that of ${validator}`;
}

/** SHA-256 of what is signed of it, hex: by this the next one names it. */
export const epochIdOf = (row: SignedColumns): string => sha256Hex(claimOf(row));

const messageOf = (row: SignedColumns): Uint8Array =>
  new TextEncoder().encode(SIGNED_AS + claimOf(row));

type SignedColumns = Omit<UnsignedEpoch, 'state' | 'input_json' | 'policy_json'>;
export type SignedEpoch = SignedColumns & Pick<EpochRow, 'signature'>;

/** By the hashes of all that it was made of, the cycles and who was registered included. Of a chain only where it is of one. */
function claimOf(row: SignedColumns): string {
  const { number, computed_ms, input_hash, policy_hash, result_hash, payload_json } = row;
  const { previous, first_kept } = row;
  return canonicalJson({
    ...{ number, computed_ms, input_hash, policy_hash, result_hash },
    payload_hash: sha256Hex(payload_json),
    ...(first_kept === null ? {} : { previous, first_kept }),
  });
}
