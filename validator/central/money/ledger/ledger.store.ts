/** Writes the ledger: groups, transfers and what accounts come to, in few statements however many there are. */
import { sql } from 'kysely';
import { isPostgres } from '../../../database/engine.ts';
import { jsonRows, prepared, type Slots } from '../../platform/database/prepared.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { AccountChange, Entry } from './ledger.entries.ts';
import type { Cause, LedgerAccount, Leg } from './ledger-account.ts';

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
        .selectFrom(jsonRows(db, rows, GROUP).as('given'))
        .select(GROUP_COLUMNS)
        // Without a condition, SQLite takes the ON of ON CONFLICT for that of a join.
        .where(sql<boolean>`true`),
    )
    .onConflict((conflict) =>
      conflict.columns(['cause_type', 'cause_id']).where('is_once', '=', sql.lit(1)).doNothing(),
    )
    .returning(['id', 'cause_type', 'cause_id']),
);

/** The new groups' numbers by cause; absent are those whose cause may come once and came before. Causes differ. */
export async function insertGroups(
  db: Db,
  causes: readonly Cause[],
): Promise<(cause: Cause) => number | undefined> {
  const given = causes.map(({ type, id, actor, requestId, atMs, once }) => ({
    cause_type: type,
    cause_id: id,
    is_once: once === true ? 1 : 0,
    actor,
    request_id: requestId,
    at_ms: atMs,
  }));
  const { rows } = await addGroups(db, { rows: JSON.stringify(given) });
  const ids = new Map(
    rows.map(({ id, cause_type, cause_id }) => [`${cause_type} ${cause_id}`, id]),
  );
  return ({ type, id }) => ids.get(`${type} ${id}`);
}

/** What was posted for a cause that may come once; none where it has not come. */
export async function legsOfOnce(db: Db, { type, id }: Pick<Cause, 'type' | 'id'>): Promise<Leg[]> {
  const rows = await db
    .selectFrom('transfers')
    .innerJoin('ledger_groups', 'ledger_groups.id', 'transfers.group_id')
    .select(['debit_id', 'credit_id', 'amount_uusd'])
    .where('cause_type', '=', type)
    .where('cause_id', '=', id)
    .where('is_once', '=', 1)
    .orderBy('seq')
    .execute();
  // Written by us from one.
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
        .selectFrom(jsonRows(db, rows, TRANSFER).as('given'))
        .select((given) => [
          'group_id',
          'debit_id',
          'credit_id',
          'amount_uusd',
          given.ref('kind').$castTo<Entry['kind']>().as('kind'),
          'pending_seq',
        ]),
    ),
);

/** Appends transfers, after their accounts were changed: until the commit nobody else numbers one of theirs. */
export async function insertTransfers(
  db: Db,
  entries: readonly (Entry & { groupId: number })[],
): Promise<void> {
  const given = entries.map(({ groupId, debit, credit, amountUusd, kind, pending }) => ({
    group_id: groupId,
    debit_id: debit,
    credit_id: credit,
    amount_uusd: amountUusd,
    kind,
    pending_seq: pending?.seq ?? null,
  }));
  await addTransfers(db, { rows: JSON.stringify(given) });
}

const CHANGE = { id: 'text', debits: 'bigint', credits: 'bigint', pending: 'bigint' } as const;

const addToAccounts = prepared((db, { rows }: Rows) =>
  db
    .updateTable('ledger_accounts')
    .from(jsonRows(db, rows, CHANGE).as('given'))
    .set((eb) => ({
      debits_posted: eb('debits_posted', '+', eb.ref('given.debits')),
      credits_posted: eb('credits_posted', '+', eb.ref('given.credits')),
      debits_pending: eb('debits_pending', '+', eb.ref('given.pending')),
    }))
    .whereRef('ledger_accounts.id', '=', 'given.id')
    .returning('ledger_accounts.id'),
);

const openAccounts = prepared((db, { rows }: Rows) =>
  db
    .insertInto('ledger_accounts')
    .columns(['id', 'debits_posted', 'credits_posted', 'debits_pending'])
    .expression((eb) =>
      eb
        .selectFrom(jsonRows(db, rows, { id: 'text' }).as('given'))
        .select((given) => [
          'id',
          given.lit(0).as('debits_posted'),
          given.lit(0).as('credits_posted'),
          given.lit(0).as('debits_pending'),
        ])
        .where(sql<boolean>`true`),
    )
    .onConflict((conflict) => conflict.column('id').doNothing()),
);

/** Adds to accounts, which come in the order in which all are locked; makes rows of those that have none. */
export async function changeAccounts(db: Db, changes: readonly AccountChange[]): Promise<void> {
  let left = changes;
  for (let round = 0; left.length > 0; round += 1) {
    if (round > 1) throw new Error('an account of the ledger cannot be opened');
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
    .where('id', 'in', (eb) =>
      eb.selectFrom(jsonRows(db, rows, { id: 'text' }).as('given')).select('id'),
    )
    // In any language's order but this one a server may sort otherwise than we do.
    .orderBy(sql`id collate "C"`)
    .forNoKeyUpdate(),
);

/** Until the commit nobody else changes those of these accounts that have rows. */
export async function lockAccounts(db: Db, ids: readonly LedgerAccount[]): Promise<void> {
  if (!isPostgres(db)) return;
  await locked(db, { rows: JSON.stringify(ids.map((id) => ({ id }))) });
}

export type Balances = {
  id: string;
  debits_posted: number;
  credits_posted: number;
  debits_pending: number;
};

/** What two accounts come to; those without a row are absent. */
export const balancesOfTwo = prepared((db, { one, other }: Slots<{ one: string; other: string }>) =>
  db.selectFrom('ledger_accounts').selectAll().where('id', 'in', [one, other]),
);

const many = prepared((db, { rows }: Rows) =>
  db
    .selectFrom('ledger_accounts')
    .selectAll()
    .where('id', 'in', (eb) =>
      eb.selectFrom(jsonRows(db, rows, { id: 'text' }).as('given')).select('id'),
    ),
);

/** What any number of accounts come to, of which nobody else changes one until the commit. */
export async function lockedBalances(
  db: Db,
  ids: readonly LedgerAccount[],
): Promise<Map<string, Balances>> {
  await lockAccounts(db, ids);
  const { rows } = await many(db, { rows: JSON.stringify(ids.map((id) => ({ id }))) });
  return new Map(rows.map((row) => [row.id, row]));
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

/** The pending transfers of a group, resolved or not, as they were written. */
export async function pendingOf(db: Db, groupId: number): Promise<PendingTransfer[]> {
  const { rows } = await pendings(db, { groupId });
  // Written by us from one.
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

/** Whether a pending transfer was posted or voided. */
export async function isResolved(db: Db, seq: number): Promise<boolean> {
  return (await resolution(db, { seq })).rows.length > 0;
}
