/** Statements: the cost of a pod for its renter, by segment, and its earnings for its provider, by day. */
import { microToUsd } from '#shared/api/money.ts';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import { sha256Hex } from '#shared/signing/signed-request.ts';
import type { Database, Db } from '../../platform/database/tables.ts';
import type { PortalIdentity, UserIdentity } from '../../platform/identity.ts';
import type { PageQuery } from '../../platform/portal-answer.ts';
import type { DayShare } from './charge.plan.ts';
import {
  meteredPods,
  type UnpostedUse,
  unpostedDays,
  unpostedOfProvider,
} from './metered.service.ts';
import { providerAccount } from './settlement.plan.ts';
import { postOnRequest } from './settlement.service.ts';
import {
  findRefund,
  type ListedPeriod,
  listPeriods,
  providerIdOf,
  sumByNode,
} from './settlement.store.ts';
import type {
  BillingQuery,
  BillingRow,
  EarningsSum,
  NodeEarnings,
  PodStatement,
} from './statement.schemas.ts';
import { billedMs, linesOf, refundLine } from './statement-lines.ts';
import { listSegments, type Meter, sumSegmentsAfter } from './usage.store.ts';

/** Maximum number of periods that have their own line in a statement. One further line sums the later ones. */
const MAX_LINES = 10_000;
const SECOND_MS = 1_000;
const PUBLIC_ID_CHARS = 32;

export type StatementsDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  /** Throws `pod_not_found` unless the account rents or has rented the pod. */
  requirePodOf(db: Db, accountId: string, podId: string): Promise<unknown>;
  /** Returns the readable name of a node. */
  nodeNameOf(executorId: string): string;
  /** Returns the instant before which all earnings of this ledger account are paid out; 0 if none are paid out. */
  paidOutUntil(db: Db, ledgerAccount: string): Promise<number>;
};

export type Statements = ReturnType<typeof createStatements>;

export function createStatements(deps: StatementsDeps) {
  const { db, clock, requirePodOf, nodeNameOf, paidOutUntil } = deps;
  return {
    /**
     * Returns the statement of one of the caller's pods, which may have ended, and posts its use first. Throws
     * `pod_not_found`.
     */
    async statement({ accountId }: UserIdentity, podId: string): Promise<PodStatement> {
      await requirePodOf(db, accountId, podId);
      await postOnRequest(deps, accountId);
      const meter = (await meteredPods(db, [podId], clock.now())).get(podId);
      if (meter === undefined) {
        const nothing = { total: 0, unposted: 0, refunded: 0, billed_seconds: 0, period_count: 0 };
        return { pod_id: podId, ...nothing, currency: 'USD', lines: [] };
      }
      const segments = await listSegments(db, podId, MAX_LINES);
      const further = await sumSegmentsAfter(db, podId, {
        seq: segments.at(-1)?.seq ?? -1,
        openEndMs: meter.settled_to_ms,
      });
      const refund = await findRefund(db, podId);
      const billed = billedMs(meter, segments) + further.billed_ms;
      return {
        pod_id: podId,
        total: microToUsd(spentBy(meter)),
        unposted: microToUsd(meter.unposted_uusd),
        refunded: microToUsd(meter.refunded_uusd),
        billed_seconds: Math.floor(billed / SECOND_MS),
        period_count: segments.length + further.count,
        currency: 'USD',
        lines: [
          ...linesOf(meter, segments, further),
          ...(refund === undefined ? [] : [refundLine(meter, refund)]),
        ],
      };
    },

    /**
     * Returns the billing rows of the caller, of another provider (`hotkey`), or of all providers (`scope=all`), latest
     * first. Rows of other providers have no pod and no amounts.
     */
    async billing(
      caller: PortalIdentity,
      { scope, page, limit }: BillingQuery,
      hotkey?: string,
    ): Promise<{ items: BillingRow[]; total: number }> {
      const selected = await selectedProvider(db, caller, { scope, hotkey });
      if (selected === undefined) return { items: [], total: 0 };
      const offset = (page - 1) * limit;
      const { periods, total } = await listPeriods(db, selected, { limit, offset });
      const paidUntil = new Map<string, number>();
      for (const id of new Set(periods.map((period) => period.provider_id))) {
        paidUntil.set(id, await paidOutUntil(db, providerAccount(id)));
      }
      const shares = await sharesOfDays(db, periods, clock.now());
      const rowOf = (period: ListedPeriod) => {
        const executor_huid = nodeNameOf(period.executor_id);
        const paidUntilMs = paidUntil.get(period.provider_id) ?? 0;
        const row = { ...billingRow(period, shares.get(period), paidUntilMs), executor_huid };
        return period.provider_id === caller.providerId ? row : publicRow(row);
      };
      return { items: periods.map(rowOf), total };
    },

    /**
     * Returns the caller's earnings by node, the highest first, and their sum, both of posted use, and the use that is
     * not posted yet.
     */
    async earnings(
      { providerId }: PortalIdentity,
      { page, limit }: PageQuery,
    ): Promise<{
      items: NodeEarnings[];
      total: number;
      sum: EarningsSum;
      unposted: EarningsSum;
    }> {
      const offset = (page - 1) * limit;
      const { nodes, sum, total } = await sumByNode(db, providerId, { limit, offset });
      // After the sum, so that a posting in between is missing rather than counted twice.
      const unposted = await unpostedOfProvider(deps, providerId);
      const items = nodes.map(({ executor_id, gpu_type, ...node }) => ({
        executor_id,
        executor_huid: nodeNameOf(executor_id),
        gpu_type,
        ...earnedOf(node),
      }));
      return { items, total, sum: earnedOf(sum), unposted: earnedOf(unposted) };
    },
  };
}

/**
 * Returns the provider whose billing is selected: its id, null for all providers, undefined for a hotkey without a
 * provider.
 */
async function selectedProvider(
  db: Db,
  caller: PortalIdentity,
  { scope, hotkey }: { scope: BillingQuery['scope']; hotkey: string | undefined },
): Promise<string | null | undefined> {
  if (hotkey !== undefined) return providerIdOf(db, hotkey);
  return scope === 'all' ? null : caller.providerId;
}

/** Returns the use that is not posted yet, by the day of billing to which it belongs. */
async function sharesOfDays(
  db: Db,
  periods: readonly ListedPeriod[],
  nowMs: number,
): Promise<ReadonlyMap<ListedPeriod, DayShare>> {
  const podIds = [...new Set(periods.map((period) => period.pod_id))];
  const unposted = await unpostedDays(db, podIds, nowMs);
  const shares = new Map<ListedPeriod, DayShare>();
  for (const period of periods) {
    const share = unposted.get(period.pod_id)?.find(({ day_ms: dayMs }) => dayMs === period.day_ms);
    if (share !== undefined) shares.set(period, share);
  }
  return shares;
}

function earnedOf(sum: UnpostedUse): EarningsSum {
  return {
    seconds: Math.floor(sum.billed_ms / SECOND_MS),
    gross_usd: microToUsd(sum.gross_uusd),
    fee_usd: microToUsd(sum.gross_uusd - sum.net_uusd),
    net_usd: microToUsd(sum.net_uusd),
  };
}

/** Returns the row of a day; `share` is its use that is not posted yet. */
function billingRow(
  period: ListedPeriod,
  share: DayShare | undefined,
  paidUntilMs: number,
): Omit<BillingRow, 'executor_huid'> {
  const unposted = {
    billed_ms: share === undefined ? 0 : share.to_ms - share.from_ms,
    gross_uusd: share?.charge_uusd ?? 0,
    net_uusd: share?.net_uusd ?? 0,
  };
  const gross = period.gross_uusd + unposted.gross_uusd - period.refunded_gross_uusd;
  const net = period.net_uusd + unposted.net_uusd - period.refunded_net_uusd;
  return {
    id: `${period.pod_id}:${period.day_ms}`,
    executor_id: period.executor_id,
    pod_id: period.pod_id,
    gpu_type: period.gpu_type,
    gpu_count: period.gpu_count,
    period_start: naiveUtc(period.from_ms),
    period_end: naiveUtc(share?.to_ms ?? period.to_ms),
    seconds: Math.floor((period.billed_ms + unposted.billed_ms) / SECOND_MS),
    gross_usd: microToUsd(gross),
    fee_usd: microToUsd(gross - net),
    net_usd: microToUsd(net),
    unposted: earnedOf(unposted),
    status: statusOf(gross, period.day_ms < paidUntilMs),
  };
}

/** Returns the row for other providers. Its id is a digest, because the original id contains the pod's id. */
function publicRow(row: BillingRow): BillingRow {
  const id = sha256Hex(row.id).slice(0, PUBLIC_ID_CHARS);
  const hidden = { pod_id: null, gross_usd: null, fee_usd: null, net_usd: null, unposted: null };
  return { ...row, id, ...hidden };
}

function statusOf(grossUusd: number, isPaid: boolean): BillingRow['status'] {
  if (grossUusd === 0) return 'reversed';
  return isPaid ? 'paid' : 'pending';
}

/**
 * Micro-dollars that the renter paid for a pod: the charges minus the part that the platform absorbed, minus refunds.
 */
export function spentBy(meter: Meter): number {
  const { charged_uusd: charged, absorbed_uusd: absorbed, refunded_uusd: refunded } = meter;
  // A refund first returns the absorbed part to the platform.
  return charged - absorbed - Math.max(0, refunded - absorbed);
}

/** Returns the amount of `spentBy` for each of these pods, up to `nowMs`. Omits pods that never ran. */
export async function spentOf(
  db: Db,
  podIds: readonly string[],
  nowMs: number,
): Promise<ReadonlyMap<string, number>> {
  const meters = await meteredPods(db, podIds, nowMs);
  return new Map([...meters].map(([podId, meter]) => [podId, spentBy(meter)]));
}

/** Returns the amount of `spentBy` for one pod, up to `nowMs`; 0 if the pod never ran. */
export async function spentOn(db: Db, podId: string, nowMs: number): Promise<number> {
  return (await spentOf(db, [podId], nowMs)).get(podId) ?? 0;
}
