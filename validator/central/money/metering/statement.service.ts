/** Statements: the cost of a pod for its renter, by segment, and its earnings for its provider, by day. */
import { microToUsd } from '#shared/api/money.ts';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import { sha256Hex } from '#shared/signing/signed-request.ts';
import type { Database, Db } from '../../platform/database/tables.ts';
import type { PortalIdentity, UserIdentity } from '../../platform/identity.ts';
import type { PageQuery } from '../../platform/portal-answer.ts';
import { addTime, NO_COST, rateOf, totalOf } from './cost.ts';
import { meteredPods, unpostedDays } from './metered.service.ts';
import { providerAccount } from './settlement.plan.ts';
import { postOnRequest } from './settlement.service.ts';
import {
  findRefund,
  type ListedPeriod,
  listPeriods,
  type Refund,
  sumByNode,
} from './settlement.store.ts';
import type {
  BillingQuery,
  BillingRow,
  EarningsSum,
  NodeEarnings,
  PodStatement,
} from './statement.schemas.ts';
import { listSegments, type Meter, type SegmentRow } from './usage.store.ts';

/** Maximum number of lines in a statement. The total includes all lines. */
const MAX_LINES = 10_000;
const SECOND_MS = 1_000;
const PUBLIC_ID_CHARS = 32;
/** State and cause of the line for the part of the minimum charge that exceeds the use. */
const MINIMUM = 'minimum_charge';

export type StatementsDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  /** Throws `pod_not_found` unless the account rents or has rented the pod. */
  requirePodOf(db: Db, accountId: string, podId: string): Promise<unknown>;
  /** Returns the instant before which all earnings of this ledger account are paid out; 0 if none are paid out. */
  paidOutUntil(db: Db, ledgerAccount: string): Promise<number>;
};

export type Statements = ReturnType<typeof createStatements>;

export function createStatements(deps: StatementsDeps) {
  const { db, clock, requirePodOf, paidOutUntil } = deps;
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
        const nothing = { total: 0, refunded: 0, billed_seconds: 0, lines: [] };
        return { pod_id: podId, ...nothing, currency: 'USD' };
      }
      const segments = await listSegments(db, podId, MAX_LINES);
      const refund = await findRefund(db, podId);
      return {
        pod_id: podId,
        total: microToUsd(spentBy(meter)),
        refunded: microToUsd(meter.refunded_uusd),
        billed_seconds: Math.floor(billedMs(meter, segments) / SECOND_MS),
        currency: 'USD',
        lines: [
          ...linesOf(meter, segments),
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
      const isAll = scope === 'all' && hotkey === undefined;
      const selected = isAll ? null : (hotkey ?? caller.hotkey);
      const offset = (page - 1) * limit;
      const { periods, total } = await listPeriods(db, selected, { limit, offset });
      const paidUntil = new Map<string, number>();
      for (const id of new Set(periods.map((period) => period.provider_id))) {
        paidUntil.set(id, await paidOutUntil(db, providerAccount(id)));
      }
      const days = await meteredDays(db, periods, clock.now());
      const rowOf = (listed: ListedPeriod) => {
        const period = days.get(listed) ?? listed;
        const row = billingRow(period, paidUntil.get(period.provider_id) ?? 0);
        return period.provider_id === caller.providerId ? row : publicRow(row);
      };
      return { items: periods.map(rowOf), total };
    },

    /** Returns the caller's earnings by node, the highest first, and their sum. Use is posted once an hour. */
    async earnings(
      { providerId }: PortalIdentity,
      { page, limit }: PageQuery,
    ): Promise<{ items: NodeEarnings[]; total: number; sum: EarningsSum }> {
      const offset = (page - 1) * limit;
      const { nodes, sum, total } = await sumByNode(db, providerId, { limit, offset });
      const items = nodes.map(({ executor_id, gpu_type, ...node }) => ({
        executor_id,
        gpu_type,
        ...earnedOf(node),
      }));
      return { items, total, sum: earnedOf(sum) };
    },
  };
}

/**
 * Returns the lines of a statement. An amount is the total at the line's end minus the total at its start, so that the
 * lines sum to the charge.
 */
function linesOf(meter: Meter, segments: readonly SegmentRow[]): PodStatement['lines'] {
  let cost = NO_COST;
  const lines = segments.map((segment) => {
    const before = cost;
    if (segment.is_billable === 1) {
      cost = addTime(cost, rateOf(meter), endOf(meter, segment) - segment.from_ms);
    }
    return {
      from: naiveUtc(segment.from_ms),
      to: naiveUtc(endOf(meter, segment)),
      state: segment.state,
      cause: segment.cause,
      gpu_count: segment.gpu_count,
      price_per_gpu: microToUsd(segment.price_uusd_per_gpu_hour),
      amount: microToUsd(cost.uusd - before.uusd),
    };
  });
  const missing = totalOf(cost, rateOf(meter)) - cost.uusd;
  const [first] = segments;
  if (missing === 0 || first === undefined) return lines;
  const period = { fromMs: first.from_ms, toMs: meter.settled_to_ms };
  return [...lines, extraLine(meter, period, { state: MINIMUM, cause: MINIMUM, uusd: missing })];
}

function refundLine(meter: Meter, refund: Refund): PodStatement['lines'][number] {
  const { from_ms: fromMs, to_ms: toMs, cause, amount_uusd: amount } = refund;
  return extraLine(meter, { fromMs, toMs }, { state: 'refund', cause, uusd: -amount });
}

/** Returns a line that no segment of the pod has. */
function extraLine(
  meter: Meter,
  { fromMs, toMs }: { fromMs: number; toMs: number },
  { state, cause, uusd }: { state: string; cause: string; uusd: number },
): PodStatement['lines'][number] {
  return {
    from: naiveUtc(fromMs),
    to: naiveUtc(toMs),
    state,
    cause,
    gpu_count: meter.gpu_count,
    price_per_gpu: microToUsd(meter.price_uusd_per_gpu_hour),
    amount: microToUsd(uusd),
  };
}

function billedMs(meter: Meter, segments: readonly SegmentRow[]): number {
  return segments
    .filter(({ is_billable }) => is_billable === 1)
    .reduce((sum, segment) => sum + Math.max(0, endOf(meter, segment) - segment.from_ms), 0);
}

/** Returns the end of a segment; an open segment is charged up to its last settlement. */
function endOf(meter: Meter, { to_ms, from_ms }: SegmentRow): number {
  return to_ms ?? Math.max(from_ms, meter.settled_to_ms);
}

/** Adds the use that is not posted yet to the days of billing to which it belongs. */
async function meteredDays(
  db: Db,
  periods: readonly ListedPeriod[],
  nowMs: number,
): Promise<ReadonlyMap<ListedPeriod, ListedPeriod>> {
  const podIds = [...new Set(periods.map((period) => period.pod_id))];
  const days = new Map<ListedPeriod, ListedPeriod>();
  const shares = await unpostedDays(db, podIds, nowMs);
  for (const period of periods) {
    const share = shares.get(period.pod_id)?.find(({ day_ms: dayMs }) => dayMs === period.day_ms);
    if (share === undefined) continue;
    days.set(period, {
      ...period,
      to_ms: share.to_ms,
      billed_ms: period.billed_ms + share.to_ms - share.from_ms,
      gross_uusd: period.gross_uusd + share.charge_uusd,
      net_uusd: period.net_uusd + share.net_uusd,
    });
  }
  return days;
}

function earnedOf(sum: { billed_ms: number; gross_uusd: number; net_uusd: number }): EarningsSum {
  return {
    seconds: Math.floor(sum.billed_ms / SECOND_MS),
    gross_usd: microToUsd(sum.gross_uusd),
    fee_usd: microToUsd(sum.gross_uusd - sum.net_uusd),
    net_usd: microToUsd(sum.net_uusd),
  };
}

function billingRow(period: ListedPeriod, paidUntilMs: number): BillingRow {
  const gross = period.gross_uusd - period.refunded_gross_uusd;
  const net = period.net_uusd - period.refunded_net_uusd;
  return {
    id: `${period.pod_id}:${period.day_ms}`,
    executor_id: period.executor_id,
    pod_id: period.pod_id,
    gpu_type: period.gpu_type,
    gpu_count: period.gpu_count,
    period_start: naiveUtc(period.from_ms),
    period_end: naiveUtc(period.to_ms),
    seconds: Math.floor(period.billed_ms / SECOND_MS),
    gross_usd: microToUsd(gross),
    fee_usd: microToUsd(gross - net),
    net_usd: microToUsd(net),
    status: statusOf(gross, period.day_ms < paidUntilMs),
  };
}

/** Returns the row for other providers. Its id is a digest, because the original id contains the pod's id. */
function publicRow(row: BillingRow): BillingRow {
  const id = sha256Hex(row.id).slice(0, PUBLIC_ID_CHARS);
  return { ...row, id, pod_id: null, gross_usd: null, fee_usd: null, net_usd: null };
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
