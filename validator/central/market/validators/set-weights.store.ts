/** Queries of the set_weights table: one row for each validator. */

import type { SetWeightsTable } from '../../platform/database/tables/executors.ts';
import type { Db } from '../../platform/database/tables.ts';

/** Stores the row unless one as new or newer is there; tells whether it did. */
export async function putSetWeights(db: Db, row: SetWeightsTable): Promise<boolean> {
  const { validator_hotkey: _, ...changed } = row;
  const { numInsertedOrUpdatedRows: count = 0n } = await db
    .insertInto('set_weights')
    .values(row)
    .onConflict((conflict) =>
      conflict
        .column('validator_hotkey')
        .doUpdateSet(changed)
        .where('set_weights.updated_at_micros', '<', row.updated_at_micros),
    )
    .executeTakeFirstOrThrow();
  return count > 0n;
}

/** Those of one validator, or the newest of any. */
export function findSetWeights(
  db: Db,
  hotkey: string | null,
): Promise<SetWeightsTable | undefined> {
  const rows = db
    .selectFrom('set_weights')
    .selectAll()
    .orderBy('updated_at_micros', 'desc')
    .orderBy('validator_hotkey');
  const wanted = hotkey === null ? rows : rows.where('validator_hotkey', '=', hotkey);
  return wanted.limit(1).executeTakeFirst();
}
