/**
 * Fees that renters have paid for each node and that no provider's fault can return any more. Validators compute the
 * rewards of rented nodes from them. They are a part of the ledger's fees, so a provider cannot change them without
 * paying them.
 */
import type { Db } from '../../platform/database/tables.ts';
import { netFee } from '../ledger/shares.ts';
import { addTime, LONGEST_FAULT_MS, MINIMUM_CHARGE_MS, NO_COST, rateOf } from './cost.ts';
import { listFees, listOpenMeters, type OpenMeter } from './paid-fees.store.ts';
import type { Meter } from './usage.store.ts';

/** Paid credit in a pod's charges, without granted credit and the part that the platform absorbed. */
export const paidIn = (
  meter: Pick<Meter, 'charged_uusd' | 'granted_uusd' | 'absorbed_uusd'>,
): number => meter.charged_uusd - meter.granted_uusd - meter.absorbed_uusd;

/** Fee that a provider's fault at `nowMs` would return at most, for a pod that has not ended. Pure. */
export function revocableFee(meter: OpenMeter, nowMs: number): number {
  if (meter.refunded_uusd > 0) return 0;
  const paid = paidIn(meter);
  if (meter.healthy_at === null) return netFee(paid);
  const fromMs = Math.max(meter.healthy_at, nowMs - LONGEST_FAULT_MS);
  // The minimum charge may cover a minute after the last contact.
  const ms = Math.max(0, meter.settled_to_ms - fromMs) + MINIMUM_CHARGE_MS;
  const returned = Math.min(paid, addTime(NO_COST, rateOf(meter), ms).uusd + 1);
  return netFee(paid) - netFee(paid - returned);
}

/** Final fees by executor id; executors without paid fees are missing. */
export async function finalFees(db: Db, nowMs: number): Promise<ReadonlyMap<string, number>> {
  const fees = new Map<string, number>();
  for (const { executor_id: id, fee_uusd: fee } of await listFees(db)) fees.set(id, fee);
  for (const meter of await listOpenMeters(db)) {
    const fee = fees.get(meter.executor_id) ?? 0;
    fees.set(meter.executor_id, Math.max(0, fee - revocableFee(meter, nowMs)));
  }
  return fees;
}
