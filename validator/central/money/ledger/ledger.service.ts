/**
 * Posts to the money ledger, in the caller's transaction: writes groups of transfers with their causes, and updates the
 * balances. Ledger accounts are locked in order of their ids and after all other locks. Callers therefore take other
 * locks first, and post several groups of one transaction in one call.
 */
import { ApiError } from '#shared/runtime/errors.ts';
import { violatedCheck } from '../../../database/engine.ts';
import type { Db } from '../../platform/database/tables.ts';
import { type Cause, changesOf, direct, type Entry, type Leg } from './double-entry.ts';
import {
  changeAccounts,
  insertGroups,
  insertTransfers,
  legsOfUniqueCause,
} from './ledger.store.ts';

/** Thrown if a unique cause was posted before. Then the transaction posted nothing. */
export class CauseTaken extends Error {
  override name = 'CauseTaken';
}

/** Returns the transfers that were posted for a unique cause; empty if there are none. */
export const legsOfCause = legsOfUniqueCause;

/**
 * Posts one group and returns its id. Rejects with `insufficient_balance` if a renter's account would fall below 0, and
 * with CauseTaken.
 */
export async function postGroup(tx: Db, legs: readonly Leg[], cause: Cause): Promise<string> {
  return postOne(tx, { entries: legs.map(direct), cause });
}

/**
 * Posts many groups in few statements and returns their ids, in order. The causes must differ. Rejects as `postGroup`
 * does; the transaction can then only be rolled back.
 */
export function postGroups(
  tx: Db,
  groups: readonly { legs: readonly Leg[]; cause: Cause }[],
): Promise<string[]> {
  return postEntries(
    tx,
    groups.map(({ legs, cause }) => ({ entries: legs.map(direct), cause })),
  );
}

type Posting = { entries: readonly Entry[]; cause: Cause };

/** Posts one group of transfers of any kind and returns its id. */
export async function postOne(tx: Db, posting: Posting): Promise<string> {
  const [id] = await postEntries(tx, [posting]);
  if (id === undefined) throw new Error('a group was posted but has no id');
  return id;
}

async function postEntries(tx: Db, postings: readonly Posting[]): Promise<string[]> {
  if (!tx.isTransaction) throw new Error('money must be posted inside a transaction');
  if (postings.length === 0) return [];
  requireDistinct(postings);
  const changes = changesOf(postings.flatMap(({ entries }) => entries));
  const idOf = await insertGroups(
    tx,
    postings.map(({ cause }) => cause),
  );
  const groups = postings.map(({ entries, cause }) => {
    const groupId = idOf(cause);
    if (groupId === undefined) throw new CauseTaken(`${cause.type} ${cause.id} was posted before`);
    return { groupId, entries };
  });
  await withinBounds(() => changeAccounts(tx, changes));
  await insertTransfers(
    tx,
    groups.flatMap(({ groupId, entries }) => entries.map((entry) => ({ ...entry, groupId }))),
  );
  return groups.map(({ groupId }) => String(groupId));
}

function requireDistinct(postings: readonly Posting[]): void {
  if (postings.some(({ entries }) => entries.length === 0))
    throw new Error('a group has no transfers');
  const causes = new Set(postings.map(({ cause }) => `${cause.type} ${cause.id}`));
  if (causes.size < postings.length)
    throw new Error('two groups of one posting have the same cause');
}

/** Translates violations of the database's balance constraints into API errors. */
async function withinBounds(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    switch (violatedCheck(error)) {
      case 'ledger_not_negative':
        throw new ApiError('insufficient_balance', 'The balance does not cover this', {
          cause: error,
        });
      case 'ledger_in_range':
        throw new ApiError('account_balance_invalid', 'The balance would exceed the maximum', {
          cause: error,
        });
      default:
        throw error;
    }
  }
}
