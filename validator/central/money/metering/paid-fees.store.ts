/** Queries on the fees that renters have paid for each node. */
import { jsonRows, prepared, type Slots } from '../../platform/database/prepared.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Meter } from './usage.store.ts';

const FEES = { executor_id: 'text', fee_uusd: 'bigint' } as const;

const add = prepared((db, { rows }: Slots<{ rows: string }>) =>
  db
    .insertInto('executor_fees')
    .columns(['executor_id', 'fee_uusd'])
    .expression((eb) =>
      eb
        .selectFrom(jsonRows(db, rows, FEES).as('input'))
        .select(['executor_id', 'fee_uusd'])
        // Without a WHERE clause, SQLite parses the ON of ON CONFLICT as a join condition.
        .where(eb.lit(true)),
    )
    .onConflict((conflict) =>
      conflict.column('executor_id').doUpdateSet((eb) => ({
        fee_uusd: eb('executor_fees.fee_uusd', '+', eb.ref('excluded.fee_uusd')),
      })),
    ),
);

/** Adds the fees of settlements; a refund has a negative fee. Call it after the ledger groups were posted. */
export async function addFees(
  db: Db,
  fees: readonly { executor_id: string; fee_uusd: number }[],
): Promise<void> {
  const sums = new Map<string, number>();
  for (const { executor_id: id, fee_uusd: fee } of fees) sums.set(id, (sums.get(id) ?? 0) + fee);
  const rows = [...sums]
    .filter(([, fee]) => fee !== 0)
    .map(([executor_id, fee_uusd]) => ({ executor_id, fee_uusd }));
  if (rows.length > 0) await add(db, { rows: JSON.stringify(rows) });
}

/** Nodes without paid fees are missing. */
export function listFees(db: Db): Promise<{ executor_id: string; fee_uusd: number }[]> {
  return db.selectFrom('executor_fees').selectAll().execute();
}

/** Meter of a pod that has not ended, and the last contact at which the pod was healthy. */
export type OpenMeter = Meter & { healthy_at: number | null };

export function listOpenMeters(db: Db): Promise<OpenMeter[]> {
  return db
    .selectFrom('usage_meters')
    .innerJoin('pods', 'pods.id', 'usage_meters.pod_id')
    .selectAll('usage_meters')
    .select('pods.healthy_at')
    .where('usage_meters.ended_at', 'is', null)
    .execute();
}
