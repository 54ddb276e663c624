/** Queries on closed months of the ledger. */
import { jsonRows, prepared, type Slots } from '../../platform/database/prepared.ts';
import type { Db, LedgerMonth } from '../../platform/database/tables.ts';
import type { StoredAccount } from './audit.ts';

/** Number of balances per statement. */
const PER_INSERT = 1_000;

/** Closed months, oldest first. */
export function listMonths(db: Db): Promise<LedgerMonth[]> {
  return db.selectFrom('ledger_months').selectAll().orderBy('month').execute();
}

/** The last closed month; undefined before the first. */
export function lastClosedMonth(db: Db): Promise<LedgerMonth | undefined> {
  return db
    .selectFrom('ledger_months')
    .selectAll()
    .orderBy('month', 'desc')
    .limit(1)
    .executeTakeFirst();
}

/** Time of the first transfer; undefined if the ledger is empty. */
export async function firstTransferMs(db: Db): Promise<number | undefined> {
  const row = await db
    .selectFrom('transfers')
    .innerJoin('ledger_groups', 'ledger_groups.id', 'transfers.group_id')
    .select('at_ms')
    .orderBy('transfers.seq')
    .limit(1)
    .executeTakeFirst();
  return row?.at_ms;
}

/** Totals of all accounts at the end of a closed month. */
export function listMonthBalances(db: Db, month: string): Promise<StoredAccount[]> {
  return db
    .selectFrom('ledger_month_balances')
    .select(['id', 'debits_posted', 'credits_posted', 'debits_pending'])
    .where('month', '=', month)
    .orderBy('id')
    .execute();
}

const BALANCE = {
  id: 'text',
  debits_posted: 'bigint',
  credits_posted: 'bigint',
  debits_pending: 'bigint',
} as const;

const addBalances = prepared((db, { rows, month }: Slots<{ rows: string; month: string }>) =>
  db
    .insertInto('ledger_month_balances')
    .columns(['month', 'id', 'debits_posted', 'credits_posted', 'debits_pending'])
    .expression((eb) =>
      eb
        .selectFrom(jsonRows(db, rows, BALANCE).as('input'))
        .select([month.as('month'), 'id', 'debits_posted', 'credits_posted', 'debits_pending']),
    ),
);

/** Stores a closed month. Returns false if the month was already closed. */
export async function insertMonth(
  tx: Db,
  month: LedgerMonth,
  balances: readonly StoredAccount[],
): Promise<boolean> {
  const done = await tx
    .insertInto('ledger_months')
    .values(month)
    .onConflict((conflict) => conflict.column('month').doNothing())
    .executeTakeFirst();
  if ((done.numInsertedOrUpdatedRows ?? 0n) === 0n) return false;
  for (let from = 0; from < balances.length; from += PER_INSERT) {
    const rows = JSON.stringify(balances.slice(from, from + PER_INSERT));
    await addBalances(tx, { rows, month: month.month });
  }
  return true;
}

/** Pending transfers up to `seq` that no transfer up to `seq` has resolved. */
export function listOpenAt(db: Db, seq: number) {
  return db
    .selectFrom('transfers')
    .leftJoin('transfers as ending', (join) =>
      join.onRef('ending.pending_seq', '=', 'transfers.seq').on('ending.seq', '<=', seq),
    )
    .selectAll('transfers')
    .where('transfers.kind', '=', 'pending')
    .where('transfers.seq', '<=', seq)
    .where('ending.seq', 'is', null)
    .orderBy('transfers.seq')
    .execute();
}
