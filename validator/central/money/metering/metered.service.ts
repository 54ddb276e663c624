/**
 * Use that is metered and not posted yet. It has no separate rows: the segments, prices, limits and contacts of the
 * pods and the balance of the account determine it at every instant, so a restart neither loses nor repeats it. Every
 * amount that a pod has cost or that an account has left is read through this module; `settlement.service.ts` posts
 * what it returns.
 */
import { type Clock, createEventLoopYield } from '#shared/runtime/clock.ts';
import type { Db } from '../../platform/database/tables.ts';
import { placedBy } from '../ledger/hold.service.ts';
import {
  type Portion,
  readable,
  type Wallet,
  walletAfterHold,
  walletIn,
} from '../ledger/wallet.service.ts';
import {
  burningAccountsOf,
  burningAccountsOn,
  listBurningOf,
  type MeterBalances,
} from './burning.store.ts';
import { type DayShare, dayShares, dueCharge } from './charge.plan.ts';
import {
  type AccountPlan,
  type PlannedRow,
  planAccount,
  planSettlements,
  type ToSettle,
} from './settlement.plan.ts';
import { listMeters, type Meter } from './usage.store.ts';

/** A meter, of whose charges the renter's journal does not have `unposted_uusd` yet. */
export type MeteredMeter = Meter & { unposted_uusd: number };

export type MeteredAccount = {
  plan: AccountPlan;
  /** The wallet as it will be after all use up to now has been posted. */
  wallet: Wallet;
  /** The billable meters as they will be then. */
  meters: ReadonlyMap<string, MeteredMeter>;
  /** Micro-dollars that leave the wallet with that posting. */
  unpostedUusd: number;
};

/** Use that is metered and not posted yet: its time, and what renters pay and the provider receives for it. */
export type UnpostedUse = { billed_ms: number; gross_uusd: number; net_uusd: number };

/** Number of accounts whose pods one statement reads. */
export const ACCOUNTS_PER_READ = 50;

/**
 * Returns the metered use of these accounts at `nowMs`. Omits accounts without billable pods, which have no use that is
 * not posted. Reads one snapshot, with or without a transaction.
 */
export async function meteredAccounts(
  db: Db,
  accountIds: readonly string[],
  nowMs: number,
): Promise<Map<string, MeteredAccount>> {
  const metered = new Map<string, MeteredAccount>();
  if (accountIds.length === 0) return metered;
  const rows = await readable(listBurningOf(db, accountIds));
  for (const [accountId, meters] of Map.groupBy(rows, ({ account_id: id }) => id)) {
    const [first] = meters;
    if (first === undefined) continue;
    const holds = await holdsOf(db, meters);
    const wallet = walletOfRow(accountId, first);
    const funds = [...holds.values()].reduce((sum, { uusd }) => sum + uusd, wallet.available);
    metered.set(
      accountId,
      project(planAccount(accountId, meters, funds, nowMs), wallet, holds, nowMs),
    );
  }
  return metered;
}

/**
 * Returns the meters of these pods, including use that is not posted yet. Omits pods that never ran.
 */
export async function meteredPods(
  db: Db,
  podIds: readonly string[],
  nowMs: number,
): Promise<ReadonlyMap<string, MeteredMeter>> {
  const metered = await meteredAccounts(db, await burningAccountsOf(db, podIds), nowMs);
  const projected = new Map([...metered.values()].flatMap(({ meters }) => [...meters]));
  // A pod that ended since then has its last charge in its row.
  const stored = await listMeters(db, podIds);
  return new Map(
    stored.map((meter) => [
      meter.pod_id,
      projected.get(meter.pod_id) ?? { ...meter, unposted_uusd: 0 },
    ]),
  );
}

/**
 * Returns, for those of these pods that are billable, the days of their use that is not posted yet.
 */
export async function unpostedDays(
  db: Db,
  podIds: readonly string[],
  nowMs: number,
): Promise<ReadonlyMap<string, DayShare[]>> {
  const metered = await meteredAccounts(db, await burningAccountsOf(db, podIds), nowMs);
  const due = [...metered.values()].flatMap(({ plan }) => plan.due);
  return new Map(due.map((each) => [each.meter.pod_id, sharesOf(each)]));
}

/** Returns the use of all pods on the provider's nodes that is not posted yet. */
export async function unpostedOfProvider(
  { db, clock }: { db: Db; clock: Clock },
  providerId: string,
): Promise<UnpostedUse> {
  const nowMs = clock.now();
  const sum = { billed_ms: 0, gross_uusd: 0, net_uusd: 0 };
  const yieldToEventLoop = createEventLoopYield(clock);
  const accounts = await burningAccountsOn(db, providerId);
  for (let from = 0; from < accounts.length; from += ACCOUNTS_PER_READ) {
    const batch = accounts.slice(from, from + ACCOUNTS_PER_READ);
    const metered = await meteredAccounts(db, batch, nowMs);
    const own = [...metered.values()]
      .flatMap(({ plan }) => plan.due)
      .filter(({ meter }) => meter.provider_id === providerId);
    for (const share of own.flatMap(sharesOf)) {
      sum.billed_ms += share.to_ms - share.from_ms;
      sum.gross_uusd += share.charge_uusd;
      sum.net_uusd += share.net_uusd;
    }
    await yieldToEventLoop();
  }
  return sum;
}

/** Days of the use of a meter that is not posted yet; empty if nothing is due. */
function sharesOf({ meter, untilMs }: ToSettle): DayShare[] {
  return dueCharge(meter, untilMs) === null ? [] : dayShares(meter, untilMs);
}

/** Open holds by pod. A meter refers to its hold until the hold is resolved. */
async function holdsOf(db: Db, meters: readonly Meter[]): Promise<Map<string, Portion>> {
  const holds = new Map<string, Portion>();
  for (const { pod_id: podId, hold_id: holdId } of meters) {
    if (holdId !== null) holds.set(podId, await placedBy(db, holdId));
  }
  return holds;
}

function walletOfRow(accountId: string, row: MeterBalances): Wallet {
  return walletIn(
    accountId,
    {
      debits_posted: row.paid_debits ?? 0,
      credits_posted: row.paid_credits ?? 0,
      debits_pending: row.paid_pending ?? 0,
    },
    {
      debits_posted: row.granted_debits ?? 0,
      credits_posted: row.granted_credits ?? 0,
      debits_pending: row.granted_pending ?? 0,
    },
  );
}

/** Plans what posting would do now: first the holds, then the charges. Pure. */
function project(
  plan: AccountPlan,
  before: Wallet,
  holds: ReadonlyMap<string, Portion>,
  nowMs: number,
): MeteredAccount {
  const owed = plan.due.filter(({ meter, untilMs }) => dueCharge(meter, untilMs) !== null);
  const meters = new Map<string, MeteredMeter>(
    plan.meters.map((meter) => [meter.pod_id, { ...meter, unposted_uusd: 0 }]),
  );
  if (owed.length === 0) return { plan, wallet: before, meters, unpostedUusd: 0 };
  let wallet = before;
  const byHold = new Map<string, Portion>();
  for (const { meter, untilMs } of owed) {
    const hold = holds.get(meter.pod_id);
    if (hold === undefined) continue;
    const uusd = Math.min(dueCharge(meter, untilMs) ?? 0, hold.uusd);
    const post = { uusd, granted: Math.min(uusd, hold.granted) };
    wallet = walletAfterHold(wallet, hold, post);
    byHold.set(meter.pod_id, post);
  }
  const { accountId } = plan;
  const settled = planSettlements(owed, new Map([[accountId, wallet]]), byHold, nowMs);
  for (const row of settled.rows) {
    const meter = meters.get(row.pod_id);
    if (meter !== undefined) meters.set(row.pod_id, meterAfter(meter, row));
  }
  const after = settled.wallets.get(accountId) ?? wallet;
  const unpostedUusd = before.paid + before.granted - after.paid - after.granted;
  return { plan, wallet: after, meters, unpostedUusd };
}

/** The meter after this settlement is posted. */
function meterAfter(meter: Meter, row: PlannedRow): MeteredMeter {
  const absorbed = row.absorbed_uusd - meter.absorbed_uusd;
  return {
    ...meter,
    unposted_uusd: row.total_uusd - meter.charged_uusd - absorbed,
    charged_uusd: row.total_uusd,
    provider_uusd: row.provider_total_uusd,
    granted_uusd: row.granted_uusd,
    absorbed_uusd: row.absorbed_uusd,
    settled_to_ms: row.to_ms,
    hold_id: null,
  };
}
