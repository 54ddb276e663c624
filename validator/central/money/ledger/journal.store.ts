/** Queries of an account's journal: its transfers and their sums. */
import { sql } from 'kysely';
import { prepared, type Slots } from '../../platform/database/prepared.ts';
import type { TransferKind } from '../../platform/database/tables/money.ts';
import type { Db } from '../../platform/database/tables.ts';
import { lastArchive } from './archive.store.ts';
import type { LedgerAccount } from './double-entry.ts';
import type { Balances } from './ledger.store.ts';

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

/** Slots of a page of an account's transfers, with `seq` between `after` and `before`. */
type PageSlots = Slots<{ id: string; after: number; before: number; limit: number }>;

/** Slots of sums over the transfers of an account after `from`. */
type FoldSlots = Slots<{ id: string; before: number; from: number }>;

/** Queries by one side of transfers. Each query reads one index in order. */
function sideOf(column: 'debit_id' | 'credit_id') {
  const own = `transfers.${column}` as const;

  const pageBy = (order: 'asc' | 'desc') =>
    prepared((db, { id, after, before, limit }: PageSlots) =>
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
        .where('transfers.seq', '<', before)
        .orderBy('transfers.seq', order)
        .limit(limit),
    );
  const pages = { asc: pageBy('asc'), desc: pageBy('desc') };

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

  const sums = prepared((db, { id, before, from }: FoldSlots) =>
    db
      .selectFrom('transfers')
      .select([
        'kind',
        sql<number>`sum(amount_uusd)`.as('all'),
        sql<number>`sum(case when seq < ${before} then amount_uusd else 0 end)`.as('before'),
      ])
      .where(own, '=', id)
      .where('seq', '>', from)
      .groupBy('kind'),
  );
  return { pages, lastBefore, sums };
}

const SIDES = [sideOf('debit_id'), sideOf('credit_id')] as const;
const [DEBIT, CREDIT] = SIDES;

/** Range of a journal, exclusive on both sides. `desc` selects its newest transfers instead of its oldest. */
export type JournalRange = { after: number; before: number; limit: number; order: 'asc' | 'desc' };

/** At most `limit` transfers of these accounts in the range, in the range's order. */
export async function listJournal(
  db: Db,
  ids: readonly LedgerAccount[],
  { order, ...range }: JournalRange,
): Promise<JournalRow[]> {
  const found = new Map<number, JournalRow>();
  for (const { pages } of SIDES) {
    for (const id of ids) {
      for (const row of (await pages[order](db, { id, ...range })).rows) found.set(row.seq, row);
    }
  }
  const sign = order === 'asc' ? 1 : -1;
  return [...found.values()].toSorted((a, b) => sign * (a.seq - b.seq)).slice(0, range.limit);
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

const freed = prepared((db, { id, before, from }: FoldSlots) =>
  db
    .selectFrom('transfers')
    .innerJoin('transfers as pending', 'pending.seq', 'transfers.pending_seq')
    .select([
      sql<number>`coalesce(sum(pending.amount_uusd), 0)`.as('all'),
      sql<number>`coalesce(sum(case when transfers.seq < ${before}
        then pending.amount_uusd else 0 end), 0)`.as('before'),
    ])
    .where('transfers.debit_id', '=', id)
    .where('transfers.seq', '>', from)
    .where('transfers.kind', 'in', ['post', 'void']),
);

/** Totals of an account at the end of the last archived month, whose last transfer is `seq`. */
export type Opening = { seq: number; balances: ReadonlyMap<string, Balances> };

const openings = prepared((db, { one, other }: Slots<{ one: string; other: string }>) =>
  db
    .selectFrom('ledger_archives')
    .innerJoin('ledger_month_balances', 'ledger_month_balances.month', 'ledger_archives.month')
    .select(['last_seq', 'id', 'debits_posted', 'credits_posted', 'debits_pending'])
    .where('id', 'in', [one, other])
    .where('ledger_archives.month', '=', (eb) =>
      eb.selectFrom('ledger_archives').select((archive) => archive.fn.max('month').as('month')),
    ),
);

/** Returns the totals of two accounts from which their journal begins. `seq` is 0 if nothing is archived. */
export async function openingOf(
  db: Db,
  one: LedgerAccount,
  other: LedgerAccount,
): Promise<Opening> {
  const { rows } = await openings(db, { one, other });
  const archived = await lastArchive(db);
  return { seq: archived?.last_seq ?? 0, balances: new Map(rows.map((row) => [row.id, row])) };
}

/**
 * Recomputes an account's sums. Reads all index entries of the account since the last archived month, so that the cost
 * grows with its history.
 */
export async function foldOf(
  db: Db,
  id: LedgerAccount,
  before: number,
  opening: Opening,
): Promise<Fold> {
  const range = { id, before, from: opening.seq };
  const debited = (await DEBIT.sums(db, range)).rows;
  const credited = (await CREDIT.sums(db, range)).rows;
  const [free = { all: 0, before: 0 }] = (await freed(db, range)).rows;
  const held = sumOf(debited, ['pending']);
  const opened = opening.balances.get(id);
  return {
    debits: added(sumOf(debited, ['direct', 'post']), opened?.debits_posted),
    credits: added(sumOf(credited, ['direct', 'post']), opened?.credits_posted),
    pending: added(
      { all: held.all - free.all, before: held.before - free.before },
      opened?.debits_pending,
    ),
  };
}

function added({ all, before }: Sum, opening = 0): Sum {
  return { all: all + opening, before: before + opening };
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
