/**
 * Refunds a renter when the provider broke a pod: everything charged since the last contact in which the pod was
 * healthy, 24 hours at most.
 */

import { microToUsd } from '#shared/api/money.ts';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import { recordEvent } from '../../delivery/events/event.service.ts';
import type { Db, Pod } from '../../platform/database/tables.ts';
import { SYSTEM_ACTOR } from '../../platform/identity.ts';
import { causedBy, type Leg } from '../ledger/double-entry.ts';
import { postGroups } from '../ledger/ledger.service.ts';
import { providerShare } from '../ledger/shares.ts';
import { grantedAccount, paidAccount } from '../ledger/wallet.service.ts';
import { returnReferral, writeAccrual } from '../referrals/referral.service.ts';
import { costBefore } from './cost.ts';
import { updateRunway } from './runway.service.ts';
import { providerAccount } from './settlement.plan.ts';
import { insertRefund } from './settlement.store.ts';
import { findMeter, listSegmentsSince, type Meter } from './usage.store.ts';

/** Longest time that is refunded. */
const LONGEST_MS = 86_400_000;

/** Call it once the pod is `broken` and settled. Does nothing if it cost nothing since it was last healthy. */
export async function refundFault(
  tx: Db,
  deps: { clock: Clock; random: Random },
  pod: Pod,
  nowMs: number,
): Promise<void> {
  const meter = await findMeter(tx, pod.id);
  if (meter === undefined) return;
  const healthyMs = pod.healthy_at ?? pod.first_running_at ?? pod.created_at;
  const fromMs = Math.max(healthyMs, nowMs - LONGEST_MS);
  const kept = costBefore(meter, await listSegmentsSince(tx, pod.id, fromMs), fromMs);
  const amount = meter.charged_uusd - kept;
  if (amount <= 0) return;
  const provider = meter.provider_uusd - providerShare(kept);
  const cause = { type: 'provider-fault', id: pod.id, atMs: nowMs, once: true };
  const legs = refundLegs(meter, { amount, provider });
  const renter = paidAccount(meter.account_id);
  const paid = legs.find(({ credit }) => credit === renter)?.amountUusd ?? 0;
  const referral = await returnReferral(tx, meter.account_id, paid, nowMs);
  const refund = { legs, cause: causedBy(SYSTEM_ACTOR, cause) };
  const [groupId = ''] = await postGroups(tx, [refund, ...referral.groups]);
  await writeAccrual(tx, referral);
  await insertRefund(tx, {
    pod_id: pod.id,
    from_ms: fromMs,
    to_ms: nowMs,
    amount_uusd: amount,
    provider_uusd: provider,
    cause: 'provider_fault',
    group_id: groupId,
    at_ms: nowMs,
  });
  await recordEvent(tx, deps, {
    accountId: pod.account_id,
    podId: pod.id,
    subEventType: 'billing.success',
    actor: SYSTEM_ACTOR,
    reason: 'provider_fault',
    payload: {
      pod_name: pod.pod_name,
      node: pod.executor_id,
      detail: 'refund',
      amount_usd: microToUsd(amount),
      since: naiveUtc(fromMs),
    },
  });
  await updateRunway(tx, pod.account_id, nowMs);
}

/**
 * Returns a charge from provider and platform to its sources: first what the platform absorbed, then paid credit, then
 * granted credit. A provider that was already paid out goes below 0 and owes it from its next earnings.
 */
export function refundLegs(
  meter: Meter,
  { amount, provider }: { amount: number; provider: number },
): Leg[] {
  const absorbed = Math.min(amount, meter.absorbed_uusd);
  const paidInAll = meter.charged_uusd - meter.granted_uusd - meter.absorbed_uusd;
  const paid = Math.min(amount - absorbed, paidInAll);
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
