/** What of an executor's evidence has to be there, by the signed head of its chain. */
import type { TrustedHotkey } from '../keys/trusted-hotkeys.ts';
import type { EvidenceHeadRow, LedgerDb } from '../store/ledger.tables.ts';
import { findHead } from './evidence-head.store.ts';
import { isHeadOf } from './evidence-head.ts';

/** Null where there is none, or none that is signed with one of `keys`. */
export async function headThatCounts(
  db: LedgerDb,
  executorId: string,
  keys: readonly TrustedHotkey[],
): Promise<EvidenceHeadRow | null> {
  const row = await findHead(db, executorId);
  return row !== undefined && isHeadOf(row, keys) ? row : null;
}

/** The same of many, each looked at once. */
export function createHeads(db: LedgerDb, keys: readonly TrustedHotkey[]) {
  const heads = new Map<string, EvidenceHeadRow | null>();
  return async (executorId: string): Promise<EvidenceHeadRow | null> => {
    const known = heads.get(executorId);
    if (known !== undefined) return known;
    const head = await headThatCounts(db, executorId, keys);
    heads.set(executorId, head);
    return head;
  };
}

/** Whether a document that was finished in a cycle from `startMs` on has to be there still. */
export function hasToBeKept(head: EvidenceHeadRow | null, startMs: number): boolean {
  return head === null || head.pruned_ms === null || startMs > head.pruned_ms;
}
