/** Refunds of ended pods by operators. The platform pays the refunds; earnings and billing of providers are unchanged. */
import { formatUsdFloor, microToUsd, usdToMicro } from '#shared/api/money.ts';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { recordEvent } from '../../delivery/events/event.service.ts';
import { recordAudit, requireReason } from '../../platform/audit/audit.service.ts';
import type { Db } from '../../platform/database/tables.ts';
import { type Actor, SYSTEM_ACTOR } from '../../platform/identity.ts';
import type { AccountPods } from '../account-pods.ts';
import { causedBy } from '../ledger/double-entry.ts';
import { postRefund } from './refund.ts';
import { spentBy } from './statement.service.ts';
import { findMeter, listMeters, type Meter } from './usage.store.ts';

export type RefundRequest = {
  podId: string;
  /** US dollars; absent for the whole amount that the renter paid. */
  amountUsd: number | undefined;
  /** Required; stored in the audit entry. */
  reason: string;
  /** Id of the operator's account. */
  operator: string;
};

export type OperatorRefunds = ReturnType<typeof createOperatorRefunds>;

export type OperatorRefundsDeps = {
  clock: Clock;
  random: Random;
  pods: AccountPods;
  /** Allows another warning about a low balance after money was added. */
  rearmLowBalance(tx: Db, accountId: string): Promise<void>;
};

export function createOperatorRefunds(deps: OperatorRefundsDeps) {
  const { clock, pods, rearmLowBalance } = deps;

  async function record(tx: Db, meter: Meter, amountUusd: number): Promise<void> {
    await recordEvent(tx, deps, {
      accountId: meter.account_id,
      podId: meter.pod_id,
      subEventType: 'billing.success',
      actor: SYSTEM_ACTOR,
      payload: {
        pod_name: null,
        node: meter.executor_id,
        detail: `refund of ${formatUsdFloor(amountUusd)}`,
        amount_usd: microToUsd(amountUusd),
      },
    });
  }

  return {
    /**
     * Refunds an ended pod in the caller's transaction, once, and restarts pods that waited for money. Throws
     * `pod_not_found`, `pod_state_conflict` for a pod that has not ended, `conflict` if the pod already has a refund, and
     * `bad_request` for more than the amount that the renter paid.
     */
    async refund(tx: Db, { podId, amountUsd, reason, operator }: RefundRequest, actor: Actor) {
      const text = requireReason(reason);
      const seen = await findMeter(tx, podId);
      if (seen === undefined) throw unknownPod();
      await pods.lock(tx, [seen.account_id]);
      const meter = await findMeter(tx, podId);
      if (meter === undefined) throw unknownPod();
      const atMs = clock.now();
      const amount = amountUsd === undefined ? spentBy(meter) : usdToMicro(amountUsd);
      requireRefundable(meter, amount);
      const cause = { type: 'operator-refund', id: podId, atMs, once: true };
      // The amount that the platform absorbed is returned first, so that the renter receives the refund in full.
      const total = meter.absorbed_uusd + amount;
      const refund = { amount: total, provider: null, fromMs: atMs, cause: 'operator_refund' };
      const groupId = await postRefund(tx, meter, refund, causedBy(actor, cause));
      await record(tx, meter, amount);
      await recordAudit(tx, {
        operator,
        action: 'pod.refund',
        subject_type: 'pod',
        subject_id: podId,
        reason: text,
        at_ms: atMs,
      });
      await pods.restart(tx, meter.account_id);
      await rearmLowBalance(tx, meter.account_id);
      return {
        pod_id: podId,
        account_id: meter.account_id,
        amount: microToUsd(amount),
        group_id: groupId,
        refunded_at: naiveUtc(atMs),
      };
    },
  };
}

function requireRefundable(meter: Meter, amount: number): void {
  if (meter.ended_at === null) {
    throw new ApiError('pod_state_conflict', 'The pod has not ended', {
      hint: 'Refund the pod after its renter has removed it.',
    });
  }
  if (meter.refunded_uusd > 0) {
    throw new ApiError('conflict', 'The pod was already refunded', {
      hint: `The pod was refunded ${formatUsdFloor(meter.refunded_uusd)}; a pod can be refunded only once.`,
    });
  }
  const paid = spentBy(meter);
  if (amount > 0 && amount <= paid) return;
  throw new ApiError(
    'bad_request',
    `The refund must be above 0 and at most the ${formatUsdFloor(paid)} that the renter paid`,
  );
}

function unknownPod(): ApiError {
  return new ApiError('pod_not_found', 'No pod with this id was ever charged');
}

/**
 * Returns the micro-dollars that `refund` without an amount would return for each of these pods; 0 if `refund` would
 * reject.
 */
export async function refundableOf(
  db: Db,
  podIds: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const meters = await listMeters(db, podIds);
  return new Map(
    meters.map((meter) => {
      const isOpen = meter.ended_at === null || meter.refunded_uusd > 0;
      return [meter.pod_id, isOpen ? 0 : spentBy(meter)];
    }),
  );
}
