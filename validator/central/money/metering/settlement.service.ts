/**
 * Settles pods: charges their use since the last settlement, in the caller's transaction. Also contains the step that
 * must precede every change that reduces an account's money or a pod's limit (`settleFirst`).
 */

import type { Clock } from '#shared/runtime/clock.ts';
import type { Db } from '../../platform/database/tables.ts';
import { lockRow, type MoneyDeps, moneyTransaction } from '../../platform/database/transactions.ts';
import { SYSTEM_ACTOR } from '../../platform/identity.ts';
import { ensureDue } from '../../platform/schedule/due.ts';
import { causedBy, type LedgerAccount, type Leg } from '../ledger/double-entry.ts';
import { heldBy, settleHold } from '../ledger/hold.service.ts';
import { postGroups } from '../ledger/ledger.service.ts';
import {
  lockedWallets,
  type Portion,
  paidAccount,
  type Wallet,
  walletOf,
} from '../ledger/wallet.service.ts';
import { accrueReferrals, writeAccrual } from '../referrals/referral.service.ts';
import { listBurning, listBurningOf } from './burning.store.ts';
import { dueCharge } from './charge.plan.ts';
import { costUntil, MINIMUM_RUNTIME_MS, rentalMinimum } from './cost.ts';
import { meteredAccounts } from './metered.service.ts';
import { fundsFor, updateRunway, updateSpendLimitDue } from './runway.service.ts';
import { burningOf, type Funds, runsOutAt } from './runway.ts';
import {
  type AccountPlan,
  endOf,
  fundsAfter,
  planSettlements,
  type ToSettle,
} from './settlement.plan.ts';
import { writeSettlements } from './settlement.store.ts';
import { findMeter, listRestarting, type Meter, raiseChangedMs } from './usage.store.ts';

/**
 * Result of settling an account: its remaining funds after all metered use and, for each pod, the latest instant of
 * possible use.
 */
export type SettlementResult = Pick<AccountPlan, 'accountId' | 'ends'> & { left: Funds };

/**
 * Posts the use of these accounts' billable pods. The caller holds their row locks. `select` returns the meters of an
 * account that are posted; all if absent. The results include use that is not posted. Omits accounts without billable
 * pods.
 */
export async function settleAccounts(
  tx: Db,
  accountIds: readonly string[],
  nowMs: number,
  select: (plan: AccountPlan) => readonly ToSettle[] = ({ due }) => due,
): Promise<SettlementResult[]> {
  const metered = [...(await meteredAccounts(tx, accountIds, nowMs)).values()];
  const due: ToSettle[] = [];
  for (const { plan } of metered) {
    const { accountId, cutOffMs } = plan;
    // The cut-off is already scheduled, unless money left the account without a call of `updateRunway`.
    if (cutOffMs !== null && cutOffMs <= nowMs) await ensureDue(tx, 'cut-off', accountId, cutOffMs);
    due.push(...select(plan));
  }
  const payers = due.map(({ meter }) => meter.account_id);
  if (due.length > 0) await settleMeters(tx, due, await lockWalletsOf(tx, payers), nowMs);
  return metered.map(({ plan, wallet }) => ({
    accountId: plan.accountId,
    ends: plan.ends,
    left: fundsAfter(wallet, plan),
  }));
}

/**
 * Posts the charges of these meters up to their instants, in few statements. The caller holds the row locks of their
 * accounts (`lockRow`) and passes their locked wallets (`lockWalletsOf`).
 */
export async function settleMeters(
  tx: Db,
  due: readonly ToSettle[],
  wallets: ReadonlyMap<string, Wallet>,
  nowMs: number,
): Promise<void> {
  const owed = due.filter(({ meter, untilMs }) => dueCharge(meter, untilMs) !== null);
  if (owed.length === 0) return;
  const byHold = await settleHolds(tx, owed, nowMs);
  const before = new Map(wallets);
  for (const { wallet } of byHold.values()) before.set(wallet.accountId, wallet);
  const plan = planSettlements(owed, before, byHold, nowMs);
  const accrual = await accrueReferrals(tx, plan.paidBy, nowMs);
  const ids = await postGroups(tx, [...plan.postings, ...accrual.groups]);
  await writeSettlements(
    tx,
    plan.rows.map((row, index) => ({ ...row, group_id: ids[index] ?? '' })),
  );
  await writeAccrual(tx, accrual);
}

/** Pays first charges from the holds that were placed at the rental, and releases the remaining holds. */
async function settleHolds(
  tx: Db,
  due: readonly ToSettle[],
  nowMs: number,
): Promise<Map<string, Portion & { wallet: Wallet }>> {
  const paid = new Map<string, Portion & { wallet: Wallet }>();
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

/** Wallets by account, locked until the transaction ends. */
export async function lockWalletsOf(
  tx: Db,
  accountIds: readonly string[],
): Promise<Map<string, Wallet>> {
  const wallets = await lockedWallets(tx, [...new Set(accountIds)]);
  return new Map(wallets.map((wallet) => [wallet.accountId, wallet]));
}

/**
 * Returns the instant up to which a billable pod is charged, at the latest `atMs`. Returns an earlier instant if the
 * pod's scheduled removal, its spend limit, the announced departure of its node or the end of the money came before,
 * even if the pod changes before a job acts on that end.
 */
export async function chargeableUntil(tx: Db, meter: Meter, atMs: number): Promise<number> {
  const burning = await listBurningOf(tx, [meter.account_id]);
  const own = burning.find(({ pod_id: id }) => id === meter.pod_id);
  if (own === undefined) return atMs;
  const funds = await fundsFor(tx, await walletOf(tx, meter.account_id), burning);
  // Ignores the idle stop, because it is not confirmed yet that the pod was idle until then, and time without
  // measurements counts as used.
  return endOf({ ...own, idle_stop_at: null }, runsOutAt(funds, burning.map(burningOf)), atMs);
}

/** Least time of unposted use that a request posts, so that frequent requests do not fill the ledger. */
const POSTED_ON_REQUEST_MS = 60_000;

/**
 * Posts the use of an account's pods because a statement or the journal of the account was requested. Leaves use of the
 * last minute unposted.
 */
export async function postOnRequest(
  deps: MoneyDeps & { clock: Clock },
  accountId: string,
): Promise<void> {
  const isOld = (meter: Meter, untilMs: number) =>
    untilMs - meter.settled_to_ms >= POSTED_ON_REQUEST_MS;
  const nowMs = deps.clock.now();
  if (!(await listBurning(deps.db, accountId)).some((meter) => isOld(meter, nowMs))) return;
  await moneyTransaction(deps, async (tx) => {
    await lockRow(tx, 'accounts', accountId);
    await settleAccounts(tx, [accountId], deps.clock.now(), ({ due }) =>
      due.filter(({ meter, untilMs }) => isOld(meter, untilMs)),
    );
  });
}

declare const SETTLED: unique symbol;

/** Proof that `settleFirst` has settled an account in this transaction. Only that function creates such a proof. */
export type SettledAccount = {
  readonly accountId: string;
  /** The wallet after the settlement. */
  readonly wallet: Wallet;
  /** Part of `wallet.available` that the account's pods need; see `reservedFor`. */
  readonly reservedUusd: number;
  /** True if a pod of the account is billable. */
  readonly isBurning: boolean;
  readonly [SETTLED]: true;
};

/**
 * Settles an account up to now and locks its row; lock pods before the call. Must be called before every change that
 * reduces an account's money or a pod's limit. Then time that was already used is paid from the money that existed at
 * that time, and no pod is stopped at a time in the past. Call `fundsReduced` or `spendLimitChanged` after the change.
 */
export async function settleFirst(
  tx: Db,
  accountId: string,
  nowMs: number,
): Promise<SettledAccount> {
  await lockRow(tx, 'accounts', accountId);
  const isBurning = (await listBurning(tx, accountId)).length > 0;
  if (isBurning) {
    const settled = await settleAccounts(tx, [accountId], nowMs);
    await raiseChangedMs(
      tx,
      settled.flatMap(({ ends }) => ends),
    );
  }
  const reservedUusd = await reservedFor(tx, accountId, nowMs);
  const wallet = await walletOf(tx, accountId);
  return { accountId, wallet, reservedUusd, isBurning } as SettledAccount;
}

/**
 * Returns the micro-dollars that an account's pods need for their next 15 minutes in addition to their holds. Counts
 * billable pods, and stopped pods that are starting again, whose rental hold is already spent.
 */
export async function reservedFor(tx: Db, accountId: string, nowMs: number): Promise<number> {
  let reserved = await neededUntil(tx, accountId, nowMs + MINIMUM_RUNTIME_MS);
  for (const meter of await listRestarting(tx, accountId)) {
    reserved += rentalMinimum(meter.price_uusd_per_gpu_hour, meter.gpu_count);
  }
  return reserved;
}

/** Cost of all billable pods until `untilMs`, minus earlier charges and holds. */
async function neededUntil(tx: Db, accountId: string, untilMs: number): Promise<number> {
  let needed = 0;
  for (const meter of await listBurning(tx, accountId)) {
    needed += Math.max(0, costUntil(meter, untilMs).uusd - meter.charged_uusd);
    if (meter.hold_id !== null) needed -= await heldBy(tx, meter.hold_id);
  }
  return Math.max(0, needed);
}

/** Returns the leg that debits paid credit of a settled account for anything except usage. */
export function debitPaid(
  { accountId }: SettledAccount,
  amountUusd: number,
  to: LedgerAccount,
): Leg {
  return { debit: paidAccount(accountId), credit: to, amountUusd };
}

/** Reschedules the cut-off after money left the account. */
export async function fundsReduced(
  tx: Db,
  { accountId, isBurning }: SettledAccount,
  nowMs: number,
): Promise<void> {
  if (isBurning) await updateRunway(tx, accountId, nowMs);
}

/** Reschedules the stop of a pod whose `max_spend_usd` has changed. Throws if the pod belongs to another account. */
export async function spendLimitChanged(
  tx: Db,
  settled: SettledAccount,
  podId: string,
): Promise<void> {
  const meter = await findMeter(tx, podId);
  if (meter === undefined) return;
  if (meter.account_id !== settled.accountId)
    throw new Error(`pod ${podId} belongs to another account`);
  await updateSpendLimitDue(tx, meter);
}
