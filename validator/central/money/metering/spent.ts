/** What renters paid for pods so far: the one figure that rows, statements and the ledger agree on. */
import type { Db } from '../../platform/database/tables.ts';
import { listMeters, type Meter } from './usage.store.ts';

/** Charged, less what the platform absorbed and what was given back; micro-dollars. */
export function spentBy(meter: Meter): number {
  const { charged_uusd: charged, absorbed_uusd: absorbed, refunded_uusd: refunded } = meter;
  // What was absorbed goes back to the platform first.
  return charged - absorbed - Math.max(0, refunded - absorbed);
}

/** By pod; those that never ran are absent. */
export async function spentOf(
  db: Db,
  podIds: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const meters = await listMeters(db, podIds);
  return new Map(meters.map((meter) => [meter.pod_id, spentBy(meter)]));
}

/** On one pod. */
export async function spentOn(db: Db, podId: string): Promise<number> {
  return (await spentOf(db, [podId])).get(podId) ?? 0;
}
