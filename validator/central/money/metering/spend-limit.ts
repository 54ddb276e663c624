/** What a pod alone may cost, as its renter has it: when that is reached, and what may go on. */
import type { Db } from '../../platform/database/tables.ts';
import { clearDue, setDue } from '../../platform/schedule/due.ts';
import { spendsOutAt } from './runway.ts';
import type { Settled } from './settled-first.ts';
import { burningOf } from './settlement.ts';
import { capOf, findMeter, type Meter } from './usage.store.ts';

/** Sets when the pod has cost as much as its renter lets it; for a changed limit as well. */
export async function boundSpending(tx: Db, meter: Meter): Promise<void> {
  const atMs = await reachedAt(tx, meter);
  if (atMs === null) await clearDue(tx, 'spend-cap', meter.pod_id);
  else await setDue(tx, 'spend-cap', meter.pod_id, atMs);
}

/** When a pod will have cost as much as its renter lets it; null: never, as things are. */
export async function capReachedAt(db: Db, podId: string): Promise<number | null> {
  const meter = await findMeter(db, podId);
  return meter === undefined ? null : reachedAt(db, meter);
}

/** The renter has changed what the pod may cost; its account was settled before. */
export async function limitChanged(tx: Db, settled: Settled, podId: string): Promise<void> {
  const meter = await findMeter(tx, podId);
  if (meter === undefined) return;
  if (meter.account_id !== settled.accountId) throw new Error(`pod ${podId} is another account's`);
  await boundSpending(tx, meter);
}

/** Whether a pod that stands still may cost more than it has. */
export async function mayCostMore(tx: Db, podId: string): Promise<boolean> {
  const meter = await findMeter(tx, podId);
  const cap = await capOf(tx, podId);
  return meter !== undefined && (cap === null || cap > meter.charged_uusd);
}

async function reachedAt(db: Db, meter: Meter): Promise<number | null> {
  const cap = meter.is_billable === 1 ? await capOf(db, meter.pod_id) : null;
  return cap === null ? null : spendsOutAt(burningOf(meter), cap);
}
