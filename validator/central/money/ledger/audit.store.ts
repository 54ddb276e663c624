/** Queries of the audit and the export. Run them in one snapshot, so that their results are consistent. */
import type { Db } from '../../platform/database/tables.ts';
import type { StoredAccount, StoredTransfer } from './audit.ts';

/** Number of rows read at a time. */
const PAGE = 2_000;

/** A transfer with the cause of its group. */
export type CausedTransfer = StoredTransfer & {
  cause_type: string;
  cause_id: string;
  actor: string;
  request_id: string | null;
  at_ms: number;
  /** Amount of the pending transfer that this transfer resolves. */
  pending_uusd: number | null;
};

/** Yields the transfers with a `seq` above `from`, in order, reading one page at a time. */
export async function* transfersAfter(db: Db, from: number): AsyncGenerator<CausedTransfer> {
  for (let after = from; ; ) {
    const rows = await db
      .selectFrom('transfers')
      .innerJoin('ledger_groups', 'ledger_groups.id', 'transfers.group_id')
      .leftJoin('transfers as pending', 'pending.seq', 'transfers.pending_seq')
      .selectAll('transfers')
      .select(['cause_type', 'cause_id', 'actor', 'request_id', 'at_ms'])
      .select('pending.amount_uusd as pending_uusd')
      .where('transfers.seq', '>', after)
      .orderBy('transfers.seq')
      .limit(PAGE)
      .execute();
    yield* rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < PAGE) return;
    after = last.seq;
  }
}

/** Every account that has a posting, by id. */
export function allAccounts(db: Db): Promise<StoredAccount[]> {
  return db.selectFrom('ledger_accounts').selectAll().orderBy('id').execute();
}

/** Ids of groups without transfers. */
export async function emptyGroups(db: Db): Promise<number[]> {
  const rows = await db
    .selectFrom('ledger_groups')
    .leftJoin('transfers', 'transfers.group_id', 'ledger_groups.id')
    .select('ledger_groups.id')
    .where('transfers.seq', 'is', null)
    .execute();
  return rows.map(({ id }) => id);
}

/** Unique causes that occur more than once. */
export function doubledCauses(db: Db) {
  return db
    .selectFrom('ledger_groups')
    .select(['cause_type', 'cause_id'])
    .where('is_once', '=', 1)
    .groupBy(['cause_type', 'cause_id'])
    .having((eb) => eb.fn.countAll(), '>', 1)
    .execute();
}

/** Returns the pods for which these holds were placed. `state` is null if the pod does not exist. */
export async function podsOfHolds(
  db: Db,
  holds: readonly number[],
): Promise<{ hold: number; podId: string; state: string | null }[]> {
  const found = [];
  for (let from = 0; from < holds.length; from += PAGE) {
    const rows = await db
      .selectFrom('ledger_groups')
      .leftJoin('pods', 'pods.id', 'ledger_groups.cause_id')
      .select(['ledger_groups.id', 'cause_id', 'pods.state'])
      .where('cause_type', '=', 'pod-hold')
      .where('ledger_groups.id', 'in', holds.slice(from, from + PAGE))
      .execute();
    found.push(...rows.map(({ id, cause_id, state }) => ({ hold: id, podId: cause_id, state })));
  }
  return found;
}
