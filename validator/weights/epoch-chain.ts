/** Epochs are a chain as the documents of evidence are: each names the one before, and the newest is the head of all (validator reference 7). */

import { createChainCheck } from '../evidence/evidence-chain.ts';
import { countsAt, type TrustedHotkey } from '../keys/trusted-hotkeys.ts';
import type { EpochRow, Ledger } from '../store/ledger.tables.ts';
import { epochsInOrder, lastEpoch } from './epoch.store.ts';
import {
  type EpochLink,
  epochIdOf,
  type SignedEpoch,
  signatureProblem,
} from './epoch-signature.ts';

/**
 * What the epoch after `last` names; `pruned`: the newest that goes when it comes, null for none. One whose signature
 * does not count, or that is of an older program, is not gone on from: the chain begins anew, and shows it.
 */
export function linkAfter(
  last: EpochRow | undefined,
  pruned: number | null,
  keys: readonly TrustedHotkey[],
): EpochLink {
  const number = (last?.number ?? 0) + 1;
  const first = last?.first_kept ?? null;
  if (last === undefined || first === null || !isVouchedFor(last, keys)) {
    return { previous: null, first_kept: number };
  }
  return { previous: epochIdOf(last), first_kept: Math.max(first, (pruned ?? 0) + 1) };
}

/** Whether it is signed with one of `keys` in that key's time. */
function isVouchedFor(row: SignedEpoch, keys: readonly TrustedHotkey[]): boolean {
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
  ledger: Ledger,
  keys: readonly TrustedHotkey[],
): Promise<string[]> {
  const newest = await lastEpoch(ledger);
  if ((newest?.first_kept ?? null) === null) return [];
  const head = headIn(newest, keys);
  const check = createChainCheck(head);
  const unsigned: string[] = [];
  for await (const row of epochsInOrder(ledger)) {
    const { number: seq, first_kept } = row;
    const isOlder = first_kept === null && seq < (head?.first_seq ?? 0);
    // What the first names may be gone, and those of older programs name nothing.
    const previous = seq === head?.first_seq ? undefined : row.previous;
    if (!isOlder) check.add({ id: epochIdOf(row), seq, previous });
    const isInChain = head !== null && seq >= head.first_seq;
    if (isInChain && !isVouchedFor(row, keys)) unsigned.push(`epoch ${seq}: ${UNSIGNED}`);
  }
  const problems = check.end(headIn(await lastEpoch(ledger), keys));
  const ofChain = problems.map(
    ({ seq, problem }) => `${seq === null ? 'epochs' : `epoch ${seq}`}: ${problem}`,
  );
  return [...unsigned, ...ofChain];
}

const UNSIGNED = 'as it is, it is not signed with a key that counts at its time';

/** What the newest epoch says of the chain; null where nobody vouches for it. */
function headIn(newest: EpochRow | undefined, keys: readonly TrustedHotkey[]) {
  const first_seq = newest?.first_kept ?? null;
  if (newest === undefined || first_seq === null || !isVouchedFor(newest, keys)) return null;
  return { first_seq, first_previous: null, last_seq: newest.number, last_id: epochIdOf(newest) };
}
