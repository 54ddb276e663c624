/**
 * Refunds a renter whose report on a pod was confirmed: the charges of the last 24 hours before the report. The provider
 * returns its share, the platform its fee.
 */
import { formatUsdFloor, microToUsd } from '#shared/api/money.ts';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import { recordEvent } from '../../delivery/events/event.service.ts';
import type { Db } from '../../platform/database/tables.ts';
import { SYSTEM_ACTOR } from '../../platform/identity.ts';
import type { AccountPods } from '../account-pods.ts';
import { causedBy } from '../ledger/double-entry.ts';
import { providerShare } from '../ledger/shares.ts';
import { costOfSegments, LONGEST_FAULT_MS, rateOf } from './cost.ts';
import { postRefund } from './refund.ts';
import { settleAccounts } from './settlement.service.ts';
import { findRefund } from './settlement.store.ts';
import { findMeter, listSegmentsSince, type Meter, type SegmentRow } from './usage.store.ts';

export type ReportRefundsDeps = {
  clock: Clock;
  random: Random;
  pods: AccountPods;
  /** Allows another warning about a low balance after money was added. */
  rearmLowBalance(tx: Db, accountId: string): Promise<void>;
};

export type ReportRefunds = ReturnType<typeof createReportRefunds>;

export function createReportRefunds(deps: ReportRefundsDeps) {
  const { clock, pods, rearmLowBalance } = deps;
  return {
    /** Locks the account with its pods. Call it before the transaction locks or changes anything else. */
    lock: (tx: Db, accountId: string) => pods.lock(tx, [accountId]),

    /**
     * Refunds the charges in the caller's transaction, and restarts pods that waited for money. The caller has locked
     * the account. Returns the micro-dollars that the renter receives: 0 for a pod that cost nothing, or that was
     * refunded before.
     */
    async refund(
      tx: Db,
      { podId, reportId, reportedMs }: { podId: string; reportId: string; reportedMs: number },
    ): Promise<number> {
      const seen = await findMeter(tx, podId);
      if (seen === undefined || (await findRefund(tx, podId)) !== undefined) return 0;
      await settleAccounts(tx, [seen.account_id], clock.now());
      const meter = (await findMeter(tx, podId)) ?? seen;
      const segments = await listSegmentsSince(tx, podId, 0);
      const { amount, fromMs } = refundableBefore(meter, segments, reportedMs);
      if (amount <= 0) return 0;
      const provider = meter.provider_uusd - providerShare(meter.charged_uusd - amount);
      const cause = { type: 'renter-report', id: reportId, atMs: clock.now(), once: true };
      const refund = { amount, provider, fromMs, cause: 'renter_report' };
      // The part that the platform absorbed returns to the platform.
      const received = amount - Math.min(amount, meter.absorbed_uusd);
      await postRefund(tx, meter, refund, causedBy(SYSTEM_ACTOR, cause));
      await recordEvent(tx, deps, {
        accountId: meter.account_id,
        podId,
        subEventType: 'billing.success',
        actor: SYSTEM_ACTOR,
        reason: 'provider_fault',
        payload: {
          pod_name: null,
          node: meter.executor_id,
          detail: `refund of ${formatUsdFloor(received)}`,
          amount_usd: microToUsd(received),
          since: naiveUtc(fromMs),
          report_id: reportId,
        },
      });
      await pods.restart(tx, meter.account_id);
      await rearmLowBalance(tx, meter.account_id);
      return received;
    },
  };
}

/** Returns the charges of the 24 hours before the report, or before the end of the pod if that is earlier. Pure. */
export function refundableBefore(
  meter: Meter,
  segments: readonly SegmentRow[],
  reportedMs: number,
): { amount: number; fromMs: number } {
  const endMs = meter.ended_at ?? Number.POSITIVE_INFINITY;
  const untilMs = Math.min(reportedMs, endMs);
  const fromMs = untilMs - LONGEST_FAULT_MS;
  const rate = rateOf(meter);
  const metered = segments.map(({ from_ms, to_ms, is_billable }) => {
    return { fromMs: from_ms, toMs: to_ms, isBillable: is_billable === 1, rate };
  });
  const costAt = (atMs: number) => costOfSegments(metered, atMs).uusd;
  // The total of an ended pod includes its minimum charge.
  const charged = endMs <= reportedMs ? meter.charged_uusd : costAt(untilMs);
  return { amount: Math.min(charged, meter.charged_uusd) - costAt(fromMs), fromMs };
}
