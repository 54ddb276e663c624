/** Settles meters: what they have used since the last time moves in the ledger, in the caller's transaction. */

import type { Db } from '../../platform/database/tables.ts';
import { SYSTEM_ACTOR } from '../../platform/identity.ts';
import { heldBy, settleHold } from '../ledger/hold.service.ts';
import { postGroups } from '../ledger/ledger.service.ts';
import { type Cause, causedBy, type Leg } from '../ledger/ledger-account.ts';
import { lockedWallets, type Wallet, walletOf } from '../ledger/wallet.service.ts';
import { accrueReferrals, noteAccrued } from '../referrals/referral.service.ts';
import { type Settled, writeSettled } from './billing.store.ts';
import { dueCharge, NOTHING_HELD, type PaidByHold, planSettlement } from './settlement.ts';
import type { Meter } from './usage.store.ts';

/** A meter and up to when it is settled. */
export type ToSettle = { meter: Meter; untilMs: number };

/**
 * Charges everything that these meters have used up to their instants, in few statements. The caller holds the rows of
 * their accounts (`lockRow`) and has their locked `wallets`, in which is left what they have then.
 */
export async function settleMeters(
  tx: Db,
  due: readonly ToSettle[],
  wallets: Map<string, Wallet>,
  nowMs: number,
): Promise<void> {
  const charged = due.filter(({ meter, untilMs }) => dueCharge(meter, untilMs) !== null);
  if (charged.length === 0) return;
  const byHold = await settleHolds(tx, charged, nowMs);
  for (const { wallet } of byHold.values()) wallets.set(wallet.accountId, wallet);
  const groups: { legs: Leg[]; cause: Cause }[] = [];
  const settled: Omit<Settled, 'group_id'>[] = [];
  const paidBy = new Map<string, number>();
  for (const { meter, untilMs } of charged) {
    const wallet = wallets.get(meter.account_id);
    if (wallet === undefined) throw new Error(`account ${meter.account_id} has no wallet`);
    const held = byHold.get(meter.pod_id) ?? NOTHING_HELD;
    const planned = planSettlement(meter, untilMs, wallet, held);
    wallets.set(meter.account_id, planned.wallet);
    groups.push({ legs: planned.legs, cause: usageCause(planned.settled, nowMs) });
    settled.push(planned.settled);
    const paid = paidOf(meter, planned.settled);
    paidBy.set(meter.account_id, (paidBy.get(meter.account_id) ?? 0) + paid);
  }
  const accrual = await accrueReferrals(tx, paidBy, nowMs);
  const ids = await postGroups(tx, [...groups, ...accrual.groups]);
  await writeSettled(
    tx,
    settled.map((row, index) => ({ ...row, group_id: ids[index] ?? '' })),
  );
  await noteAccrued(tx, accrual);
}

/** What of a settlement the renter paid with money of its own. */
function paidOf(before: Meter, after: Omit<Settled, 'group_id'>): number {
  const granted = after.granted_uusd - before.granted_uusd;
  const absorbed = after.absorbed_uusd - before.absorbed_uusd;
  return after.charge_uusd - granted - absorbed;
}

/** A pod's number of settlement comes once: a second process cannot charge it again. */
function usageCause(settled: Pick<Settled, 'pod_id' | 'tick_seq'>, atMs: number): Cause {
  const id = `${settled.pod_id}:${settled.tick_seq}`;
  return causedBy(SYSTEM_ACTOR, { type: 'usage', id, atMs, once: true });
}

/** What was held for a pod since it was rented pays first; the rest of it is free from then on. */
async function settleHolds(
  tx: Db,
  due: readonly ToSettle[],
  nowMs: number,
): Promise<Map<string, PaidByHold & { wallet: Wallet }>> {
  const paid = new Map<string, PaidByHold & { wallet: Wallet }>();
  for (const { meter, untilMs } of due) {
    if (meter.hold_id === null) continue;
    const uusd = Math.min(dueCharge(meter, untilMs) ?? 0, await heldBy(tx, meter.hold_id));
    const before = await walletOf(tx, meter.account_id);
    const cause = { type: 'pod-hold-settled', id: meter.pod_id, atMs: nowMs, once: true };
    await settleHold(tx, meter.hold_id, uusd, causedBy(SYSTEM_ACTOR, cause));
    const wallet = await walletOf(tx, meter.account_id);
    paid.set(meter.pod_id, { uusd, granted: before.granted - wallet.granted, wallet });
  }
  return paid;
}

/** By account; nobody else spends from them until the commit. */
export async function walletsOf(
  tx: Db,
  accountIds: readonly string[],
): Promise<Map<string, Wallet>> {
  const wallets = await lockedWallets(tx, [...new Set(accountIds)]);
  return new Map(wallets.map((wallet) => [wallet.accountId, wallet]));
}

/** What the account can spend on pods that are metered: what is available, and what is held for these very pods. */
export async function fundsOf(wallet: Wallet, tx: Db, burning: readonly Meter[]): Promise<number> {
  let funds = wallet.available;
  for (const { hold_id } of burning) if (hold_id !== null) funds += await heldBy(tx, hold_id);
  return funds;
}
