/**
 * Fees that renters have paid for each node and that no provider's fault can return any more. Validators compute the
 * rewards of rented nodes from them. They are a part of the ledger's fees, so a provider cannot change them without
 * paying them.
 */
import { type Clock, createEventLoopYield } from '#shared/runtime/clock.ts';
import type { Db } from '../../platform/database/tables.ts';
import { netFee } from '../ledger/shares.ts';
import { paidIn } from './charge.plan.ts';
import { addTime, LONGEST_FAULT_MS, MINIMUM_CHARGE_MS, NO_COST, rateOf } from './cost.ts';
import { ACCOUNTS_PER_READ, meteredAccounts } from './metered.service.ts';
import { listFees, listOpenMeters, type OpenMeter } from './paid-fees.store.ts';

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

/**
 * Final fees by executor id, including use that is not posted yet; executors without paid fees are missing. A posting
 * while this function reads can make the result smaller than the exact fees, but never larger.
 */
export async function finalFees(db: Db, clock: Clock): Promise<ReadonlyMap<string, number>> {
  const nowMs = clock.now();
  const fees = new Map<string, number>();
  const add = (id: string, fee: number) => fees.set(id, (fees.get(id) ?? 0) + fee);
  for (const { executor_id: id, fee_uusd: fee } of await listFees(db)) add(id, fee);
  const open = new Map((await listOpenMeters(db)).map((meter) => [meter.pod_id, meter]));
  const yieldToEventLoop = createEventLoopYield(clock);
  const burning = [...open.values()].filter(({ is_billable: billable }) => billable === 1);
  const accounts = [...new Set(burning.map(({ account_id: id }) => id))];
  for (let from = 0; from < accounts.length; from += ACCOUNTS_PER_READ) {
    const batch = accounts.slice(from, from + ACCOUNTS_PER_READ);
    for (const { plan, meters } of (await meteredAccounts(db, batch, nowMs)).values()) {
      for (const before of plan.meters.filter(({ pod_id: id }) => open.has(id))) {
        const after = { ...before, ...meters.get(before.pod_id) };
        add(before.executor_id, netFee(paidIn(after)) - netFee(paidIn(before)));
        open.set(before.pod_id, after);
      }
    }
    await yieldToEventLoop();
  }
  for (const meter of open.values()) add(meter.executor_id, -revocableFee(meter, nowMs));
  return new Map([...fees].map(([id, fee]) => [id, Math.max(0, fee)]));
}
