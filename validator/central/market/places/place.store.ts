/** All queries on node_places. */
import { prepared, type Slots } from '../../platform/database/prepared.ts';
import type { NodePlacesTable } from '../../platform/database/tables/executors.ts';
import type { Db } from '../../platform/database/tables.ts';

const placeOf = prepared((db, { executorId }: Slots<{ executorId: string }>) =>
  db.selectFrom('node_places').selectAll().where('executor_id', '=', executorId),
);

export async function findPlace(db: Db, executorId: string): Promise<NodePlacesTable | undefined> {
  return (await placeOf(db, { executorId })).rows[0];
}

export async function putPlace(db: Db, row: NodePlacesTable): Promise<void> {
  const { executor_id: _, ...rest } = row;
  await db
    .insertInto('node_places')
    .values(row)
    .onConflict((conflict) => conflict.column('executor_id').doUpdateSet(rest))
    .execute();
}
