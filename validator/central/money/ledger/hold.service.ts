/** Holds: money that is set aside for one purpose, and ends posted or voided, once (README, "Money"). */
import { ApiError } from '#shared/runtime/errors.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Entry } from './ledger.entries.ts';
import { postOne } from './ledger.service.ts';
import { isResolved, lockAccounts, type PendingTransfer, pendingOf } from './ledger.store.ts';
import type { Cause, LedgerAccount, Leg } from './ledger-account.ts';
import { lockedStandingOf, lockedWalletOf, spendLegs } from './wallet.service.ts';

/** Where a renter's held money goes once it is spent. */
const USAGE = 'clearing:usage';

/** Sets `amountUusd` of what is available aside, granted credit first; returns the hold's id. Rejects with `insufficient_balance`. */
export async function placeHold(
  tx: Db,
  accountId: string,
  amountUusd: number,
  cause: Cause,
): Promise<string> {
  const wallet = await lockedWalletOf(tx, accountId);
  const entries = spendLegs(wallet, amountUusd, USAGE).map(
    (leg): Entry => ({ ...leg, kind: 'pending', pending: null }),
  );
  return postOne(tx, { entries, cause });
}

/**
 * Sets a payout aside, which goes to the world once it is posted; returns the hold's id. Rejects with
 * `insufficient_balance` where the account has less that is not set aside: I16.
 */
export async function placePayout(
  tx: Db,
  payer: LedgerAccount,
  amountUusd: number,
  cause: Cause,
): Promise<string> {
  const { posted, pending } = await lockedStandingOf(tx, payer);
  if (amountUusd > posted - pending) {
    throw new ApiError('insufficient_balance', 'There is less than that to be paid out');
  }
  const leg: Leg = { debit: payer, credit: 'external:payout', amountUusd };
  return postOne(tx, { entries: [{ ...leg, kind: 'pending', pending: null }], cause });
}

/**
 * Ends a hold: `postUusd` of it is spent, granted credit first, and goes where it was set aside for; the rest is free again.
 * Rejects for a hold that has ended, and for more than it holds: what is beyond it is spent by itself.
 */
export async function settleHold(
  tx: Db,
  holdId: string,
  postUusd: number,
  cause: Cause,
): Promise<void> {
  if (await resolve(tx, holdId, postUusd, cause)) return;
  throw new Error(`hold ${holdId} has ended already`);
}

/** Micro-dollars that a hold still sets aside; 0 once it has ended. */
export async function heldBy(db: Db, holdId: string): Promise<number> {
  const held = await pendingOf(db, Number(holdId));
  const [first] = held;
  if (first === undefined || (await isResolved(db, first.seq))) return 0;
  return held.reduce((sum, { amountUusd }) => sum + amountUusd, 0);
}

/** Ends a hold of which nothing is spent. Does nothing to one that has ended. */
export async function voidHold(tx: Db, holdId: string, cause: Cause): Promise<void> {
  await resolve(tx, holdId, 0, cause);
}

/** False when it has ended before. */
async function resolve(tx: Db, holdId: string, postUusd: number, cause: Cause): Promise<boolean> {
  const held = await pendingOf(tx, Number(holdId));
  const [first] = held;
  if (first === undefined) throw new Error(`there is no hold ${holdId}`);
  const [debited, credited] = [held.map(({ debit }) => debit), held.map(({ credit }) => credit)];
  // All that are needed, at once: nobody waits in a circle.
  await lockAccounts(tx, postUusd > 0 ? [...credited, ...debited] : debited);
  if (await isResolved(tx, first.seq)) return false;
  await postOne(tx, { entries: endingOf(held, postUusd), cause });
  return true;
}

function endingOf(held: readonly PendingTransfer[], postUusd: number): Entry[] {
  let left = postUusd;
  const entries = held.map(({ seq, debit, credit, amountUusd }): Entry => {
    const posted = Math.min(left, amountUusd);
    left -= posted;
    const pending = { seq, amountUusd };
    return posted > 0
      ? { debit, credit, amountUusd: posted, kind: 'post', pending }
      : { debit, credit, amountUusd, kind: 'void', pending };
  });
  if (left !== 0) throw new RangeError(`a hold does not cover ${postUusd}`);
  return entries;
}
