/**
 * Posting to the money ledger: linked groups of transfers, each with its cause, and what accounts come to, in the
 * caller's transaction. Whoever needs other locks takes them first; several groups of one transaction go in one call,
 * for accounts are locked in the order of their names.
 */
import { ApiError } from '#shared/runtime/errors.ts';
import { violatedCheck } from '../../../database/engine.ts';
import type { Db } from '../../platform/database/tables.ts';
import { changesOf, direct, type Entry } from './ledger.entries.ts';
import { changeAccounts, insertGroups, insertTransfers, legsOfOnce } from './ledger.store.ts';
import type { Cause, Leg } from './ledger-account.ts';

/** A cause that may come once has come before; nothing was posted. */
export class CauseTaken extends Error {
  override name = 'CauseTaken';
}

/** What was posted for a cause that may come once; none where it has not come. */
export const legsOf = legsOfOnce;

/** Posts one group and returns its id. Rejects with `insufficient_balance` where a user's account would go below 0, and with CauseTaken. */
export async function postGroup(tx: Db, legs: readonly Leg[], cause: Cause): Promise<string> {
  return postOne(tx, { entries: legs.map(direct), cause });
}

/**
 * Posts many groups in few statements and returns their ids, in order; no two have the same cause. Rejects as
 * `postGroup` does, after which the transaction can only be undone.
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

/** One group of transfers of any kind. */
export async function postOne(tx: Db, posting: Posting): Promise<string> {
  const [id] = await postEntries(tx, [posting]);
  if (id === undefined) throw new Error('a group was posted and has no number');
  return id;
}

async function postEntries(tx: Db, postings: readonly Posting[]): Promise<string[]> {
  if (!tx.isTransaction) throw new Error('money is posted outside a transaction');
  if (postings.length === 0) return [];
  requireDistinct(postings);
  const changes = changesOf(postings.flatMap(({ entries }) => entries));
  const idOf = await insertGroups(
    tx,
    postings.map(({ cause }) => cause),
  );
  const groups = postings.map(({ entries, cause }) => {
    const groupId = idOf(cause);
    if (groupId === undefined) throw new CauseTaken(`${cause.type} ${cause.id} is posted already`);
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
  if (postings.some(({ entries }) => entries.length === 0)) throw new Error('an empty group');
  const causes = new Set(postings.map(({ cause }) => `${cause.type} ${cause.id}`));
  if (causes.size < postings.length) throw new Error('two groups of one cause in one posting');
}

/** The database's own conditions are the last word on what an account can bear. */
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
        throw new ApiError(
          'account_balance_invalid',
          'The balance would pass what can be counted',
          {
            cause: error,
          },
        );
      default:
        throw error;
    }
  }
}
