/** Money that has come in for an account, whoever took it: credited once, and what stood still for want of it goes on. */

import { formatUsdFloor } from '#shared/api/money.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import { findAccountByAddress } from '../../accounts/account/account.service.ts';
import { recordEvent } from '../../delivery/events/event.service.ts';
import type { Db } from '../../platform/database/tables.ts';
import { SYSTEM_ACTOR } from '../../platform/identity.ts';
import { fundsAdded, lockWithPods } from '../cut-off/cut-off.ts';
import { CauseTaken, legsOf, postGroup } from '../ledger/ledger.service.ts';
import { causedBy, type Leg } from '../ledger/ledger-account.ts';
import { paidAccount } from '../ledger/wallet.service.ts';
import { rearmLowBalance } from '../low-balance/low-balance.service.ts';
import { succeededSince } from './top-up.store.ts';

type Deps = { clock: Clock; random: Random };

export type PaidCredit = {
  accountId: string;
  amountUusd: number;
  /** Of the charge or payment: it is credited once. */
  id: string;
};

/** The caller holds the account and its pods (`lockWithPods`). Rejects with CauseTaken for what was credited before. */
export async function addPaidCredit(
  tx: Db,
  deps: Deps,
  { accountId, amountUusd, id }: PaidCredit,
): Promise<void> {
  const leg: Leg = { debit: 'external:topup', credit: paidAccount(accountId), amountUusd };
  const cause = { type: 'top-up', id, atMs: deps.clock.now(), once: true };
  await postGroup(tx, [leg], causedBy(SYSTEM_ACTOR, cause));
  await fundsAdded(tx, deps, accountId);
  await rearmLowBalance(tx, accountId);
  await recordEvent(tx, deps, {
    ...{ accountId, subEventType: 'billing.success', actor: SYSTEM_ACTOR },
    payload: { pod_name: null, node: null, detail: `topped up by ${formatUsdFloor(amountUusd)}` },
  });
}

/** Micro-dollars of charges that succeeded after `sinceMs`, less what of them went back: their payer may dispute them yet. */
export const disputableCredit = succeededSince;

/** A payment that the operator has received by other means; `reference` is the payment's own. */
export type PayIn = { email: string; amountUusd: number; reference: string };

/** What became of a payment. */
export type PaidIn =
  | 'credited'
  | 'credited before'
  | 'no such account'
  | 'the reference is that of another payment';

/** Notes it, however often it is told. */
export async function payIn(
  tx: Db,
  deps: Deps,
  { email, amountUusd, reference }: PayIn,
): Promise<PaidIn> {
  const account = await findAccountByAddress(tx, email);
  if (account === undefined) return 'no such account';
  await lockWithPods(tx, [account.id]);
  const id = `pay-in:${reference}`;
  try {
    await addPaidCredit(tx, deps, { accountId: account.id, amountUusd, id });
    return 'credited';
  } catch (error) {
    if (!(error instanceof CauseTaken)) throw error;
    const [leg] = await legsOf(tx, { type: 'top-up', id });
    const isSame = leg?.credit === paidAccount(account.id) && leg.amountUusd === amountUusd;
    return isSame ? 'credited before' : 'the reference is that of another payment';
  }
}
