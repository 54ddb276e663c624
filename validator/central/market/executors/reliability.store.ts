/** All queries on node_days: at most 31 rows per node. */
import { sql } from 'kysely';
import { prepared, preparedEach, type Slots } from '../../platform/database/prepared.ts';
import type { NodeDaysTable } from '../../platform/database/tables/executors.ts';
import type { Db } from '../../platform/database/tables.ts';
import { NO_COUNTS, type NodeCounts } from './reliability.plan.ts';

type Day = Pick<NodeDaysTable, 'executor_id' | 'day'>;

const add = preparedEach((db, { executor_id, day }: Slots<Day>, counts) => {
  const sums = Object.entries(counts).map(([name, count]) => [
    name,
    sql<number>`${sql.ref(`node_days.${name}`)} + ${count}`,
  ]);
  return db
    .insertInto('node_days')
    .values({ executor_id, day, ...NO_COUNTS, ...counts })
    .onConflict((conflict) =>
      conflict.columns(['executor_id', 'day']).doUpdateSet(Object.fromEntries(sums)),
    );
});

/** Adds the counts to the row of the day. */
export async function addCounts(
  tx: Db,
  { executor_id, day }: Day,
  counts: Partial<NodeCounts>,
): Promise<void> {
  await add(tx, counts, { executor_id, day });
}

const sumOf = (column: keyof NodeCounts) =>
  sql<number>`coalesce(sum(${sql.ref(column)}), 0)`.as(column);

const sums = prepared((db, { executorId, day }: Slots<{ executorId: string; day: number }>) =>
  db
    .selectFrom('node_days')
    .select([
      sumOf('observed_ms'),
      sumOf('reachable_ms'),
      sumOf('rented_ms'),
      sumOf('launches_succeeded'),
      sumOf('launches_failed'),
      sumOf('interruptions'),
    ])
    .where('executor_id', '=', executorId)
    .where('day', '>', day),
);

/** Sums of the days after `day`. */
export async function sumsAfter(db: Db, executorId: string, day: number): Promise<NodeCounts> {
  const [row = {}] = (await sums(db, { executorId, day })).rows;
  const numbers = Object.entries(row).map(([name, sum]) => [name, Number(sum)]);
  return { ...NO_COUNTS, ...Object.fromEntries(numbers) };
}

export async function deleteDaysUntil(tx: Db, day: number): Promise<void> {
  await tx.deleteFrom('node_days').where('day', '<=', day).execute();
}
