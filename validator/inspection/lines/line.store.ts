/** Queries of executors' lines. */
import { prepared, type Slots } from '../../store/prepared.ts';
import type { LineRow, StoreDb } from '../../store/tables.ts';

const lineOf = prepared((db, { executorId }: Slots<{ executorId: string }>) =>
  db.selectFrom('lines').selectAll().where('executor_id', '=', executorId),
);

export async function findLine(db: StoreDb, executorId: string): Promise<LineRow | undefined> {
  return (await lineOf(db, { executorId })).rows[0];
}

/** All lines by executor id. */
export async function listLines(db: StoreDb): Promise<Map<string, LineRow>> {
  const rows = await db.selectFrom('lines').selectAll().execute();
  return new Map(rows.map((row) => [row.executor_id, row]));
}

export async function saveLine(db: StoreDb, row: LineRow): Promise<void> {
  const { executor_id: _, ...values } = row;
  await db
    .insertInto('lines')
    .values(row)
    .onConflict((conflict) => conflict.column('executor_id').doUpdateSet(values))
    .execute();
}

/** Records the measurement that the checks last used. */
export async function markReported(db: StoreDb, executorId: string, measuredMs: number) {
  await db
    .updateTable('lines')
    .set({ told_ms: measuredMs })
    .where('executor_id', '=', executorId)
    .execute();
}

/** Fastest measurement of other executors since `sinceMs`, per direction; 0 if there is none. */
export async function fastestOfOthers(
  db: StoreDb,
  executorId: string,
  sinceMs: number,
): Promise<{ down_kbit: number; up_kbit: number }> {
  // One indexed query per direction: a scan would run in every inspection of every executor.
  const fastest = async (way: 'last_down_kbit' | 'last_up_kbit') => {
    const row = await db
      .selectFrom('lines')
      .select(way)
      .where('executor_id', '!=', executorId)
      .where('measured_ms', '>=', sinceMs)
      .orderBy(way, 'desc')
      .limit(1)
      .executeTakeFirst();
    return row?.[way] ?? 0;
  };
  return { down_kbit: await fastest('last_down_kbit'), up_kbit: await fastest('last_up_kbit') };
}
