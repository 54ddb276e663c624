/** Copies the journal of one ledger into an empty ledger. */
import { transfersAfter } from '../../../validator/central/money/ledger/audit.store.ts';
import type { Entry, LedgerAccount } from '../../../validator/central/money/ledger/double-entry.ts';
import { postOne } from '../../../validator/central/money/ledger/ledger.service.ts';
import { pendingOf } from '../../../validator/central/money/ledger/ledger.store.ts';
import type { Database } from '../../../validator/central/platform/database/tables.ts';
import { testCause } from './wallet.ts';

/** Posts the groups of `from` to an empty database, in the same order. */
export async function replayJournal(from: Database, to: Database): Promise<void> {
  const groups = Map.groupBy(await Array.fromAsync(transfersAfter(from, 0)), (row) => row.group_id);
  /** Pending transfers in the new ledger, by their sequence number in the old ledger. */
  const copiedPending = new Map<number, { seq: number; amountUusd: number }>();
  for (const rows of groups.values()) {
    const entries = rows.map(
      (row): Entry => ({
        debit: row.debit_id as LedgerAccount,
        credit: row.credit_id as LedgerAccount,
        amountUusd: row.amount_uusd,
        kind: row.kind,
        pending: copiedPending.get(row.pending_seq ?? 0) ?? null,
      }),
    );
    const id = await to.transaction().execute((tx) => postOne(tx, { entries, cause: testCause() }));
    const pending = await pendingOf(to, Number(id));
    for (const [index, row] of rows.filter(({ kind }) => kind === 'pending').entries()) {
      const made = pending[index];
      if (made !== undefined) copiedPending.set(row.seq, made);
    }
  }
}
