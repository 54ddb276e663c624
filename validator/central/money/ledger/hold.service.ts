/** Holds: money reserved for one purpose and resolved once, by posting or voiding; see ../README.md. */
import { ApiError } from '#shared/runtime/errors.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Cause, Entry, LedgerAccount, Leg } from './double-entry.ts';
import { postOne } from './ledger.service.ts';
import { isResolved, lockAccounts, type PendingTransfer, pendingOf } from './ledger.store.ts';
import {
  isGranted,
  lockedBalancesOf,
  lockedWalletOf,
  type Portion,
  spendLegs,
} from './wallet.service.ts';

/** Account that is credited when a renter's hold is posted. */
const USAGE = 'clearing:usage';

/** Holds `amountUusd` of an account's available money, granted credit first. Returns the hold's id. Rejects with `insufficient_balance`. */
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
 * Holds the amount of a payout, which posting moves to `external:payout`. Returns the hold's id. Rejects with
 * `insufficient_balance` if the amount exceeds the payer's balance minus its holds.
 */
export async function holdPayout(
  tx: Db,
  payer: LedgerAccount,
  amountUusd: number,
  cause: Cause,
): Promise<string> {
  const { posted, pending } = await lockedBalancesOf(tx, payer);
  if (amountUusd > posted - pending) {
    throw new ApiError('insufficient_balance', 'The balance is below this payout');
  }
  const leg: Leg = { debit: payer, credit: 'external:payout', amountUusd };
  return postOne(tx, { entries: [{ ...leg, kind: 'pending', pending: null }], cause });
}

/**
 * Resolves a hold: posts `postUusd` of it, granted credit first, and releases the rest. Rejects if the hold is already
 * resolved or holds less than `postUusd`.
 */
export async function settleHold(
  tx: Db,
  holdId: string,
  postUusd: number,
  cause: Cause,
): Promise<void> {
  if (await resolve(tx, holdId, postUusd, cause)) return;
  throw new Error(`hold ${holdId} is already resolved`);
}

/** Micro-dollars that a hold reserves; 0 once it is resolved. */
export async function heldBy(db: Db, holdId: string): Promise<number> {
  const held = await pendingOf(db, Number(holdId));
  const [first] = held;
  if (first === undefined || (await isResolved(db, first.seq))) return 0;
  return portionOf(held).uusd;
}

/** Amount for which a hold was placed, whether or not it is resolved. It never changes. */
export async function placedBy(db: Db, holdId: string): Promise<Portion> {
  return portionOf(await pendingOf(db, Number(holdId)));
}

function portionOf(held: readonly PendingTransfer[]): Portion {
  const sumOf = (some: readonly PendingTransfer[]) =>
    some.reduce((sum, { amountUusd }) => sum + amountUusd, 0);
  return { uusd: sumOf(held), granted: sumOf(held.filter(({ debit }) => isGranted(debit))) };
}

/** Releases a whole hold. Does nothing if it is already resolved. */
export async function voidHold(tx: Db, holdId: string, cause: Cause): Promise<void> {
  await resolve(tx, holdId, 0, cause);
}

/** Returns false if the hold was already resolved. */
async function resolve(tx: Db, holdId: string, postUusd: number, cause: Cause): Promise<boolean> {
  const held = await pendingOf(tx, Number(holdId));
  const [first] = held;
  if (first === undefined) throw new Error(`there is no hold ${holdId}`);
  const [debited, credited] = [held.map(({ debit }) => debit), held.map(({ credit }) => credit)];
  // Lock all accounts at once, in their order, so that transactions cannot deadlock.
  await lockAccounts(tx, postUusd > 0 ? [...credited, ...debited] : debited);
  if (await isResolved(tx, first.seq)) return false;
  await postOne(tx, { entries: resolutionOf(held, postUusd), cause });
  return true;
}

function resolutionOf(held: readonly PendingTransfer[], postUusd: number): Entry[] {
  let left = postUusd;
  const entries = held.map(({ seq, debit, credit, amountUusd }): Entry => {
    const posted = Math.min(left, amountUusd);
    left -= posted;
    const pending = { seq, amountUusd };
    return posted > 0
      ? { debit, credit, amountUusd: posted, kind: 'post', pending }
      : { debit, credit, amountUusd, kind: 'void', pending };
  });
  if (left !== 0)
    throw new RangeError(`the amount to post exceeds the hold by ${left} micro-dollars`);
  return entries;
}
