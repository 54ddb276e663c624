/** Records differences between the pods of a node and those of the database, for operators. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Database, Db, Drift } from '../../platform/database/tables.ts';

/** Maximum number of retained entries. */
const MAX_ENTRIES = 10_000;

export type DriftKind = Drift['kind'];

/** Stores an entry, and removes the oldest entries if there are more than 10,000. */
export async function recordDrift(
  { db, clock }: { db: Database; clock: Clock },
  found: Pick<Drift, 'kind' | 'executor_id' | 'pod_id'>,
): Promise<void> {
  const { seq } = await db
    .insertInto('drift')
    .values({ ...found, at_ms: clock.now() })
    .returning('seq')
    .executeTakeFirstOrThrow();
  await db
    .deleteFrom('drift')
    .where('seq', '<=', seq - MAX_ENTRIES)
    .execute();
}

/** Lists entries before `seq`, newest first. */
export function driftBefore(db: Db, seq: number, limit: number): Promise<Drift[]> {
  return db
    .selectFrom('drift')
    .selectAll()
    .where('seq', '<', seq)
    .orderBy('seq', 'desc')
    .limit(limit)
    .execute();
}

/** Counts the entries since `sinceMs` by kind. */
export async function countDrift(
  db: Db,
  sinceMs: number,
): Promise<{ kind: DriftKind; count: number }[]> {
  const rows = await db
    .selectFrom('drift')
    .select((eb) => ['kind', eb.fn.countAll<number>().as('count')])
    .where('at_ms', '>=', sinceMs)
    .groupBy('kind')
    .orderBy('kind')
    .execute();
  return rows.map(({ kind, count }) => ({ kind, count: Number(count) }));
}
