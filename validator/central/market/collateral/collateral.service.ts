/** Deposits of nodes and providers, from a feed and from the operator. Either covers a node. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Database, Db } from '../../platform/database/tables.ts';
import {
  deleteDeposits,
  insertDeposits,
  isKnownSubject,
  listFeedSubjects,
  updateDepositFlag,
  updateDepositFlags,
} from './collateral.store.ts';

export { type Deposit, listDeposits } from './collateral.store.ts';

export type CollateralDeps = { db: Database; clock: Clock };

/** Replaces the deposits of the feed. Returns the numbers of added and removed deposits. */
export async function applyFeed(
  { db, clock }: CollateralDeps,
  subjects: readonly string[],
): Promise<{ added: number; removed: number }> {
  return db.transaction().execute(async (tx) => {
    const stored = new Set(await listFeedSubjects(tx));
    const wanted = new Set(subjects);
    const added = subjects.filter((subject) => !stored.has(subject));
    const removed = [...stored].filter((subject) => !wanted.has(subject));
    const row = { source: 'feed', note: null, created_at: clock.now() } as const;
    await insertDeposits(
      tx,
      added.map((subject) => ({ subject, ...row })),
    );
    await deleteDeposits(tx, 'feed', removed);
    await updateDepositFlags(tx, [...added, ...removed].toSorted());
    return { added: added.length, removed: removed.length };
  });
}

/**
 * Records a deposit of the operator. Returns false if the subject is neither the id of a node nor the hotkey of a
 * provider.
 */
export async function addDeposit(
  { db, clock }: CollateralDeps,
  { subject, note }: { subject: string; note: string },
): Promise<boolean> {
  return db.transaction().execute(async (tx) => {
    if (!(await isKnownSubject(tx, subject))) return false;
    await insertDeposits(tx, [{ subject, source: 'operator', note, created_at: clock.now() }]);
    await updateDepositFlags(tx, [subject]);
    return true;
  });
}

/** Removes a deposit that the operator recorded; false if there is none. A deposit in the feed is unchanged. */
export async function removeDeposit(db: Database, subject: string): Promise<boolean> {
  return db.transaction().execute(async (tx) => {
    const deleted = await deleteDeposits(tx, 'operator', [subject]);
    await updateDepositFlags(tx, [subject]);
    return deleted > 0;
  });
}

/** Derives the flag of a new node. The node may have been added while deposits changed. */
export async function recheckDeposit(tx: Db, executorId: string): Promise<void> {
  await updateDepositFlag(tx, executorId);
}
