/** Posts the refund of a pod's charges and stores it. A pod has at most one refund. */
import type { Db } from '../../platform/database/tables.ts';
import type { Cause, Leg } from '../ledger/double-entry.ts';
import { postGroups } from '../ledger/ledger.service.ts';
import { grantedAccount, paidAccount } from '../ledger/wallet.service.ts';
import { returnReferral, writeAccrual } from '../referrals/referral.service.ts';
import { paidIn } from './charge.plan.ts';
import { providerAccount } from './settlement.plan.ts';
import { deductFromDays, insertRefund } from './settlement.store.ts';
import type { Meter } from './usage.store.ts';

export type PodRefund = {
  /** Micro-dollars of the charge that are returned. */
  amount: number;
  /**
   * Part of `amount` that the provider pays; the platform pays the remaining part. If null, the platform pays the whole
   * amount, and the provider's billing history does not change.
   */
  provider: number | null;
  /** Beginning of the refunded time. */
  fromMs: number;
  /** Cause that the statement of the pod shows. */
  cause: string;
};

/** Returns the id of the posted group. The caller has locked the account and settled the pod. */
export async function postRefund(
  tx: Db,
  meter: Meter,
  { amount, provider, fromMs, cause: stated }: PodRefund,
  cause: Cause,
): Promise<string> {
  const { pod_id: podId, account_id: accountId } = meter;
  const legs = refundLegs(meter, { amount, provider: provider ?? 0 });
  const renter = paidAccount(accountId);
  const paid = legs.find(({ credit }) => credit === renter)?.amountUusd ?? 0;
  const referral = await returnReferral(tx, accountId, paid, cause.atMs);
  const [groupId = ''] = await postGroups(tx, [{ legs, cause }, ...referral.groups]);
  await writeAccrual(tx, referral);
  const refund = {
    pod_id: podId,
    from_ms: fromMs,
    to_ms: cause.atMs,
    amount_uusd: amount,
    provider_uusd: provider ?? 0,
    cause: stated,
    group_id: groupId,
    at_ms: cause.atMs,
  };
  await insertRefund(tx, refund, { meter, paidUusd: paid });
  if (provider !== null) await deductFromDays(tx, refund);
  return groupId;
}

/**
 * Returns a charge from provider and platform to its sources: first the part that the platform absorbed, then paid
 * credit, then granted credit. A provider that was already paid out falls below 0, and its next earnings cover the
 * debt.
 */
function refundLegs(
  meter: Meter,
  { amount, provider }: { amount: number; provider: number },
): Leg[] {
  const absorbed = Math.min(amount, meter.absorbed_uusd);
  const paid = Math.min(amount - absorbed, paidIn(meter));
  const legs: Leg[] = [
    { debit: providerAccount(meter.provider_id), credit: REFUND, amountUusd: provider },
    { debit: 'platform:fee', credit: REFUND, amountUusd: amount - provider },
    { debit: REFUND, credit: 'platform:absorbed', amountUusd: absorbed },
    { debit: REFUND, credit: paidAccount(meter.account_id), amountUusd: paid },
    {
      debit: REFUND,
      credit: grantedAccount(meter.account_id),
      amountUusd: amount - absorbed - paid,
    },
  ];
  return legs.filter(({ amountUusd }) => amountUusd > 0);
}

const REFUND = 'clearing:refund';
