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

const FEE_COLUMNS = [
  ...(['pod_id', 'account_id', 'executor_id', 'is_billable', 'settled_to_ms'] as const),
  ...(['price_uusd_per_gpu_hour', 'gpu_count', 'charged_uusd', 'granted_uusd'] as const),
  ...(['absorbed_uusd', 'refunded_uusd'] as const),
] as const;

/** Columns of a pod that has not ended that decide about its fees. */
export type OpenMeter = Pick<Meter, (typeof FEE_COLUMNS)[number]> & {
  /** Last contact at which the pod was healthy. */
  healthy_at: number | null;
};

const openMeters = prepared((db, _: Slots<Record<string, never>>) =>
  db
    .selectFrom('usage_meters')
    .innerJoin('pods', 'pods.id', 'usage_meters.pod_id')
    .select(FEE_COLUMNS.map((name) => `usage_meters.${name}` as const))
    .select('pods.healthy_at')
    .where('usage_meters.ended_at', 'is', null),
);

/** Lists the meters of pods that have not ended. */
export async function listOpenMeters(db: Db): Promise<OpenMeter[]> {
  return (await openMeters(db, {})).rows;
}
