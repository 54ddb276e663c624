/**
 * Refunds a renter when the provider broke a pod: all charges since the last contact at which the pod was healthy, but
 * for at most 24 hours.
 */

import { microToUsd } from '#shared/api/money.ts';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import { recordEvent } from '../../delivery/events/event.service.ts';
import type { Db, Pod } from '../../platform/database/tables.ts';
import { SYSTEM_ACTOR } from '../../platform/identity.ts';
import { causedBy } from '../ledger/double-entry.ts';
import { providerShare } from '../ledger/shares.ts';
import { costBefore, LONGEST_FAULT_MS } from './cost.ts';
import { postRefund } from './refund.ts';
import { updateRunway } from './runway.service.ts';
import { findRefund } from './settlement.store.ts';
import { findMeter, listSegmentsSince } from './usage.store.ts';

/**
 * Refunds the charges. Call it once the pod is `broken` and settled. Does nothing if the pod cost nothing since it was
 * last healthy, or if it had a refund before: its node returned and was lost again.
 */
export async function refundFault(
  tx: Db,
  deps: { clock: Clock; random: Random },
  pod: Pod,
  nowMs: number,
): Promise<void> {
  const meter = await findMeter(tx, pod.id);
  if (meter === undefined || (await findRefund(tx, pod.id)) !== undefined) return;
  const healthyMs = pod.healthy_at ?? pod.first_running_at ?? pod.created_at;
  const fromMs = Math.max(healthyMs, nowMs - LONGEST_FAULT_MS);
  const kept = costBefore(meter, await listSegmentsSince(tx, pod.id, fromMs), fromMs);
  const amount = meter.charged_uusd - kept;
  if (amount <= 0) return;
  const provider = meter.provider_uusd - providerShare(kept);
  const cause = { type: 'provider-fault', id: pod.id, atMs: nowMs, once: true };
  const refund = { amount, provider, fromMs, cause: 'provider_fault' };
  await postRefund(tx, meter, refund, causedBy(SYSTEM_ACTOR, cause));
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
