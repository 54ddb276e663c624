/** Credits money that was received for an account: once per payment, in one transaction with all its effects. */
import { formatUsdFloor } from '#shared/api/money.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import { findAccountByAddress } from '../../accounts/account/account.service.ts';
import { recordEvent } from '../../delivery/events/event.service.ts';
import type { Db } from '../../platform/database/tables.ts';
import { SYSTEM_ACTOR } from '../../platform/identity.ts';
import type { AccountPods } from '../account-pods.ts';
import { causedBy, type Leg } from '../ledger/double-entry.ts';
import { CauseTaken, legsOfCause, postGroup } from '../ledger/ledger.service.ts';
import { paidAccount } from '../ledger/wallet.service.ts';
import { rearmLowBalance } from '../low-balance/low-balance.service.ts';

export type PaidCreditDeps = { clock: Clock; random: Random; pods: AccountPods };

export type PaidCredit = {
  accountId: string;
  amountUusd: number;
  /** Id of the charge or payment, which is credited once. */
  id: string;
};

/** Requires `AccountPods.lock`. Rejects with CauseTaken if the payment was credited before. */
export async function addPaidCredit(
  tx: Db,
  deps: PaidCreditDeps,
  { accountId, amountUusd, id }: PaidCredit,
): Promise<void> {
  const leg: Leg = { debit: 'external:topup', credit: paidAccount(accountId), amountUusd };
  const cause = { type: 'top-up', id, atMs: deps.clock.now(), once: true };
  await postGroup(tx, [leg], causedBy(SYSTEM_ACTOR, cause));
  await deps.pods.restart(tx, accountId);
  await rearmLowBalance(tx, accountId);
  await recordEvent(tx, deps, {
    accountId,
    subEventType: 'billing.success',
    actor: SYSTEM_ACTOR,
    payload: { pod_name: null, node: null, detail: `topped up by ${formatUsdFloor(amountUusd)}` },
  });
}

/** A payment that the operator received outside the marketplace. `reference` identifies it. */
export type PayIn = { email: string; amountUusd: number; reference: string };

export type PayInResult =
  | 'credited'
  | 'credited before'
  | 'no such account'
  | 'another payment has this reference';

/** Credits a payment. Repeated calls have no effect. */
export async function payIn(
  tx: Db,
  deps: PaidCreditDeps,
  { email, amountUusd, reference }: PayIn,
): Promise<PayInResult> {
  const account = await findAccountByAddress(tx, email);
  if (account === undefined) return 'no such account';
  await deps.pods.lock(tx, [account.id]);
  const id = `pay-in:${reference}`;
  try {
    await addPaidCredit(tx, deps, { accountId: account.id, amountUusd, id });
    return 'credited';
  } catch (error) {
    if (!(error instanceof CauseTaken)) throw error;
    const [leg] = await legsOfCause(tx, { type: 'top-up', id });
    const isSame = leg?.credit === paidAccount(account.id) && leg.amountUusd === amountUusd;
    return isSame ? 'credited before' : 'another payment has this reference';
  }
}

export { disputableCredit } from './top-up.store.ts';
