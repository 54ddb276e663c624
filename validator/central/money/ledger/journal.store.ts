/** Queries of an account's journal: its transfers and their sums. */
import { sql } from 'kysely';
import { prepared, type Slots } from '../../platform/database/prepared.ts';
import type { TransferKind } from '../../platform/database/tables/money.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { LedgerAccount } from './double-entry.ts';

export type JournalRow = {
  seq: number;
  group_id: number;
  debit_id: string;
  credit_id: string;
  amount_uusd: number;
  kind: TransferKind;
  /** Amount of the pending transfer that this transfer resolves. */
  pending_uusd: number | null;
  at_ms: number;
  cause_type: string;
  cause_id: string;
};

/** Sums of an account's transfers: of all transfers, and of transfers with a lower `seq` than a given one. */
export type Fold = { debits: Sum; credits: Sum; pending: Sum };
type Sum = { all: number; before: number };

/** Queries by one side of transfers. Each query reads one index in order. */
function sideOf(column: 'debit_id' | 'credit_id') {
  const own = `transfers.${column}` as const;

  const page = prepared(
    (db, { id, after, limit }: Slots<{ id: string; after: number; limit: number }>) =>
      db
        .selectFrom('transfers')
        .innerJoin('ledger_groups', 'ledger_groups.id', 'transfers.group_id')
        .leftJoin('transfers as pending', 'pending.seq', 'transfers.pending_seq')
        .select([
          'transfers.seq',
          'transfers.group_id',
          'transfers.debit_id',
          'transfers.credit_id',
          'transfers.amount_uusd',
          'transfers.kind',
          'pending.amount_uusd as pending_uusd',
          'at_ms',
          'cause_type',
          'cause_id',
        ])
        .where(own, '=', id)
        .where('transfers.seq', '>', after)
        .orderBy('transfers.seq')
        .limit(limit),
  );

  const lastBefore = prepared((db, { id, atMs }: Slots<{ id: string; atMs: number }>) =>
    db
      .selectFrom('transfers')
      .innerJoin('ledger_groups', 'ledger_groups.id', 'transfers.group_id')
      .select('transfers.seq')
      .where(own, '=', id)
      .where('at_ms', '<', atMs)
      .orderBy('transfers.seq', 'desc')
      .limit(1),
  );

  const sums = prepared((db, { id, before }: Slots<{ id: string; before: number }>) =>
    db
      .selectFrom('transfers')
      .select([
        'kind',
        sql<number>`sum(amount_uusd)`.as('all'),
        sql<number>`sum(case when seq < ${before} then amount_uusd else 0 end)`.as('before'),
      ])
      .where(own, '=', id)
      .groupBy('kind'),
  );
  return { page, lastBefore, sums };
}

const SIDES = [sideOf('debit_id'), sideOf('credit_id')] as const;
const [DEBIT, CREDIT] = SIDES;

/** The first `limit` transfers of these accounts with a `seq` above `after`, in order. */
export async function listJournal(
  db: Db,
  ids: readonly LedgerAccount[],
  { after, limit }: { after: number; limit: number },
): Promise<JournalRow[]> {
  const found = new Map<number, JournalRow>();
  for (const { page } of SIDES) {
    for (const id of ids) {
      for (const row of (await page(db, { id, after, limit })).rows) found.set(row.seq, row);
    }
  }
  return [...found.values()].toSorted((a, b) => a.seq - b.seq).slice(0, limit);
}

/** `seq` of the last transfer of these accounts before `atMs`; 0 if there is none. */
export async function lastSeqBefore(
  db: Db,
  ids: readonly LedgerAccount[],
  atMs: number,
): Promise<number> {
  let last = 0;
  for (const { lastBefore } of SIDES) {
    for (const id of ids) {
      const [row] = (await lastBefore(db, { id, atMs })).rows;
      last = Math.max(last, row?.seq ?? 0);
    }
  }
  return last;
}

const freed = prepared((db, { id, before }: Slots<{ id: string; before: number }>) =>
  db
    .selectFrom('transfers')
    .innerJoin('transfers as pending', 'pending.seq', 'transfers.pending_seq')
    .select([
      sql<number>`coalesce(sum(pending.amount_uusd), 0)`.as('all'),
      sql<number>`coalesce(sum(case when transfers.seq < ${before}
        then pending.amount_uusd else 0 end), 0)`.as('before'),
    ])
    .where('transfers.debit_id', '=', id)
    .where('transfers.kind', 'in', ['post', 'void']),
);

/** Recomputes an account's sums. Reads all index entries of the account, so that the cost grows with its history. */
export async function foldOf(db: Db, id: LedgerAccount, before: number): Promise<Fold> {
  const debited = (await DEBIT.sums(db, { id, before })).rows;
  const credited = (await CREDIT.sums(db, { id, before })).rows;
  const [free = { all: 0, before: 0 }] = (await freed(db, { id, before })).rows;
  const held = sumOf(debited, ['pending']);
  return {
    debits: sumOf(debited, ['direct', 'post']),
    credits: sumOf(credited, ['direct', 'post']),
    pending: { all: held.all - free.all, before: held.before - free.before },
  };
}

function sumOf(
  rows: readonly (Sum & { kind: TransferKind })[],
  kinds: readonly TransferKind[],
): Sum {
  const sum = { all: 0, before: 0 };
  for (const { kind, all, before } of rows) {
    if (!kinds.includes(kind)) continue;
    sum.all += all;
    sum.before += before;
  }
  return sum;
}
