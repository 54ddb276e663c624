/** Queries that write and read the ledger: groups, transfers, account balances. Writes are batched. */
import { sql } from 'kysely';
import { isPostgres } from '../../../database/engine.ts';
import {
  idsJson,
  isAmong,
  jsonRows,
  prepared,
  type Slots,
} from '../../platform/database/prepared.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { AccountChange, Cause, Entry, LedgerAccount, Leg } from './double-entry.ts';

type Rows = Slots<{ rows: string }>;

const GROUP = {
  cause_type: 'text',
  cause_id: 'text',
  is_once: 'bigint',
  actor: 'text',
  request_id: 'text',
  at_ms: 'bigint',
} as const;
const GROUP_COLUMNS = [
  'cause_type',
  'cause_id',
  'is_once',
  'actor',
  'request_id',
  'at_ms',
] as const;

const addGroups = prepared((db, { rows }: Rows) =>
  db
    .insertInto('ledger_groups')
    .columns(GROUP_COLUMNS)
    .expression((eb) =>
      eb
        .selectFrom(jsonRows(db, rows, GROUP).as('input'))
        .select(GROUP_COLUMNS)
        // Without a WHERE clause, SQLite parses the ON of ON CONFLICT as a join condition.
        .where(sql<boolean>`true`),
    )
    .onConflict((conflict) =>
      conflict.columns(['cause_type', 'cause_id']).where('is_once', '=', sql.lit(1)).doNothing(),
    )
    .returning(['id', 'cause_type', 'cause_id']),
);

/**
 * Inserts groups and returns a lookup of their ids by cause. The causes must differ. Skips unique causes that already
 * exist.
 */
export async function insertGroups(
  db: Db,
  causes: readonly Cause[],
): Promise<(cause: Cause) => number | undefined> {
  const groups = causes.map(({ type, id, actor, requestId, atMs, once }) => ({
    cause_type: type,
    cause_id: id,
    is_once: once === true ? 1 : 0,
    actor,
    request_id: requestId,
    at_ms: atMs,
  }));
  const { rows } = await addGroups(db, { rows: JSON.stringify(groups) });
  const ids = new Map(
    rows.map(({ id, cause_type, cause_id }) => [`${cause_type} ${cause_id}`, id]),
  );
  return ({ type, id }) => ids.get(`${type} ${id}`);
}

/** Returns the transfers that were posted for a unique cause; empty if there are none. */
export async function legsOfUniqueCause(
  db: Db,
  { type, id }: Pick<Cause, 'type' | 'id'>,
): Promise<Leg[]> {
  const rows = await db
    .selectFrom('transfers')
    .innerJoin('ledger_groups', 'ledger_groups.id', 'transfers.group_id')
    .select(['debit_id', 'credit_id', 'amount_uusd'])
    .where('cause_type', '=', type)
    .where('cause_id', '=', id)
    .where('is_once', '=', 1)
    .orderBy('seq')
    .execute();
  // The ids were written from values of type LedgerAccount.
  return rows.map(({ debit_id, credit_id, amount_uusd }) => ({
    debit: debit_id as LedgerAccount,
    credit: credit_id as LedgerAccount,
    amountUusd: amount_uusd,
  }));
}

const TRANSFER = {
  group_id: 'bigint',
  debit_id: 'text',
  credit_id: 'text',
  amount_uusd: 'bigint',
  kind: 'text',
  pending_seq: 'bigint',
} as const;
const TRANSFER_COLUMNS = [
  'group_id',
  'debit_id',
  'credit_id',
  'amount_uusd',
  'kind',
  'pending_seq',
] as const;

const addTransfers = prepared((db, { rows }: Rows) =>
  db
    .insertInto('transfers')
    .columns(TRANSFER_COLUMNS)
    .expression((eb) =>
      eb
        .selectFrom(jsonRows(db, rows, TRANSFER).as('input'))
        .select((input) => [
          'group_id',
          'debit_id',
          'credit_id',
          'amount_uusd',
          input.ref('kind').$castTo<Entry['kind']>().as('kind'),
          'pending_seq',
        ]),
    ),
);

/** Appends transfers. Call it after `changeAccounts`, whose locks keep the `seq` of each account's transfers in order. */
export async function insertTransfers(
  db: Db,
  entries: readonly (Entry & { groupId: number })[],
): Promise<void> {
  const transfers = entries.map(({ groupId, debit, credit, amountUusd, kind, pending }) => ({
    group_id: groupId,
    debit_id: debit,
    credit_id: credit,
    amount_uusd: amountUusd,
    kind,
    pending_seq: pending?.seq ?? null,
  }));
  await addTransfers(db, { rows: JSON.stringify(transfers) });
}

const CHANGE = { id: 'text', debits: 'bigint', credits: 'bigint', pending: 'bigint' } as const;

const addToAccounts = prepared((db, { rows }: Rows) =>
  db
    .updateTable('ledger_accounts')
    .from(jsonRows(db, rows, CHANGE).as('input'))
    .set((eb) => ({
      debits_posted: eb('debits_posted', '+', eb.ref('input.debits')),
      credits_posted: eb('credits_posted', '+', eb.ref('input.credits')),
      debits_pending: eb('debits_pending', '+', eb.ref('input.pending')),
    }))
    .whereRef('ledger_accounts.id', '=', 'input.id')
    .returning('ledger_accounts.id'),
);

const openAccounts = prepared((db, { rows }: Rows) =>
  db
    .insertInto('ledger_accounts')
    .columns(['id', 'debits_posted', 'credits_posted', 'debits_pending'])
    .expression((eb) =>
      eb
        .selectFrom(jsonRows(db, rows, { id: 'text' }).as('input'))
        .select((input) => [
          'id',
          input.lit(0).as('debits_posted'),
          input.lit(0).as('credits_posted'),
          input.lit(0).as('debits_pending'),
        ])
        .where(sql<boolean>`true`),
    )
    .onConflict((conflict) => conflict.column('id').doNothing()),
);

/** Applies changes, which must be sorted by account id. Creates missing accounts. */
export async function changeAccounts(db: Db, changes: readonly AccountChange[]): Promise<void> {
  let left = changes;
  for (let round = 0; left.length > 0; round += 1) {
    if (round > 1) throw new Error('a ledger account could not be created');
    const rows = JSON.stringify(left);
    if (round > 0) await openAccounts(db, { rows });
    await lockAccounts(
      db,
      left.map(({ id }) => id),
    );
    const changed = new Set((await addToAccounts(db, { rows })).rows.map(({ id }) => id));
    left = left.filter(({ id }) => !changed.has(id));
  }
}

const locked = prepared((db, { rows }: Rows) =>
  db
    .selectFrom('ledger_accounts')
    .select('id')
    .where(isAmong(db, 'id', rows))
    // Byte order as in `changesOf`, because the server's locale may sort differently.
    .orderBy(sql`id collate "C"`)
    .forNoKeyUpdate(),
);

/** Locks the existing ones of these accounts until the transaction ends. */
export async function lockAccounts(db: Db, ids: readonly LedgerAccount[]): Promise<void> {
  if (!isPostgres(db)) return;
  await locked(db, { rows: idsJson(ids) });
}

export type Balances = {
  id: string;
  debits_posted: number;
  credits_posted: number;
  debits_pending: number;
};

/** Balances of two accounts. Omits accounts without postings. */
export const balancesOfTwo = prepared((db, { one, other }: Slots<{ one: string; other: string }>) =>
  db.selectFrom('ledger_accounts').selectAll().where('id', 'in', [one, other]),
);

const many = prepared((db, { rows }: Rows) =>
  db
    .selectFrom('ledger_accounts')
    .selectAll()
    .where(isAmong(db, 'id', rows)),
);

/** Lists the balances of these accounts. Omits accounts without a posting. */
export async function listBalances(db: Db, ids: readonly LedgerAccount[]): Promise<Balances[]> {
  return (await many(db, { rows: idsJson(ids) })).rows;
}

/** Locks accounts until the transaction ends and returns their balances by id. */
export async function lockedBalances(
  db: Db,
  ids: readonly LedgerAccount[],
): Promise<Map<string, Balances>> {
  await lockAccounts(db, ids);
  return new Map((await listBalances(db, ids)).map((row) => [row.id, row]));
}

export type PendingTransfer = {
  seq: number;
  debit: LedgerAccount;
  credit: LedgerAccount;
  amountUusd: number;
};

const pendings = prepared((db, { groupId }: Slots<{ groupId: number }>) =>
  db
    .selectFrom('transfers')
    .select(['seq', 'debit_id', 'credit_id', 'amount_uusd'])
    .where('group_id', '=', groupId)
    .where('kind', '=', 'pending')
    .orderBy('seq'),
);

/** The pending transfers of a group in order, whether or not they are resolved. */
export async function pendingOf(db: Db, groupId: number): Promise<PendingTransfer[]> {
  const { rows } = await pendings(db, { groupId });
  // The ids were written from values of type LedgerAccount.
  return rows.map(({ seq, debit_id, credit_id, amount_uusd }) => ({
    seq,
    debit: debit_id as LedgerAccount,
    credit: credit_id as LedgerAccount,
    amountUusd: amount_uusd,
  }));
}

const resolution = prepared((db, { seq }: Slots<{ seq: number }>) =>
  db.selectFrom('transfers').select('seq').where('pending_seq', '=', seq),
);

export async function isResolved(db: Db, seq: number): Promise<boolean> {
  return (await resolution(db, { seq })).rows.length > 0;
}
