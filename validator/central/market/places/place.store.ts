/** All queries on node_places. */
import type { NodePlacesTable } from '../../platform/database/tables/executors.ts';
import type { Db } from '../../platform/database/tables.ts';

export async function findPlace(db: Db, executorId: string): Promise<NodePlacesTable | undefined> {
  return db
    .selectFrom('node_places')
    .selectAll()
    .where('executor_id', '=', executorId)
    .executeTakeFirst();
}

export async function putPlace(db: Db, row: NodePlacesTable): Promise<void> {
  const { executor_id: _, ...rest } = row;
  await db
    .insertInto('node_places')
    .values(row)
    .onConflict((conflict) => conflict.column('executor_id').doUpdateSet(rest))
    .execute();
}
