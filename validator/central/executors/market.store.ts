/** The nodes on offer, with what they are looked for by: no inventory is read for it. */
import { type RawBuilder, sql } from 'kysely';
import type { Db, Executor, MeasuredFigures } from '../db/tables.ts';

/** One node on offer. */
export type MarketNode = MeasuredFigures &
  Pick<
    Executor,
    | 'id'
    | 'gpu_type'
    | 'gpu_count'
    | 'machine_name'
    | 'price_uusd_per_gpu_hour'
    | 'min_gpu_count'
    | 'collateral_deposited'
    | 'lat'
    | 'lon'
    | 'location_json'
    | 'slots_total'
    | 'slots_free'
  >;

function offered(db: Db) {
  return db
    .selectFrom('executors')
    .innerJoin('providers', 'providers.id', 'executors.provider_id')
    .where('state', '=', 'verified')
    .where('paused', '=', 0)
    .where('providers.opted_in', '=', 1)
    .where('providers.banned_at', 'is', null);
}

function market(db: Db) {
  return offered(db).select([
    ...(['executors.id', 'gpu_type', 'gpu_count', 'machine_name', 'min_gpu_count'] as const),
    ...(['price_uusd_per_gpu_hour', 'collateral_deposited'] as const),
    ...(['lat', 'lon', 'location_json'] as const),
    ...(['gpu_memory_mib', 'cpu_cores', 'memory_kib', 'disk_free_kib', 'ports_free'] as const),
    ...(['sysbox_runtime', 'can_split', 'nvlink'] as const),
    ...(['slots_total', 'slots_free'] as const),
  ]);
}

/** Verified, not paused, of a provider that takes part; cheapest first, then by id. */
export async function listMarket(db: Db): Promise<MarketNode[]> {
  return market(db).orderBy('price_uusd_per_gpu_hour').orderBy('executors.id').execute();
}

/** One of them. */
export async function findOnMarket(db: Db, id: string): Promise<MarketNode | undefined> {
  return market(db).where('executors.id', '=', id).executeTakeFirst();
}

/** A condition on the columns of a node on offer. */
export type MarketCondition = { name: string; holds: RawBuilder<boolean> };

/** How many nodes are left after each of the conditions, in order. */
export async function countAfterEach(
  db: Db,
  conditions: readonly MarketCondition[],
): Promise<{ name: string; remaining: number }[]> {
  const counts = conditions.map((_, index) => {
    const sofar = sql.join(
      conditions.slice(0, index + 1).map(({ holds }) => sql`(${holds})`),
      sql` and `,
    );
    return sql<number>`coalesce(sum(case when ${sofar} then 1 else 0 end), 0)`.as(`n${index}`);
  });
  const row: Record<string, number> = await offered(db).select(counts).executeTakeFirstOrThrow();
  return conditions.map(({ name }, index) => ({ name, remaining: row[`n${index}`] ?? 0 }));
}

/** A page of those that meet all of them, cheapest first, then by id. */
export async function idsWhere(
  db: Db,
  conditions: readonly MarketCondition[],
  page: { offset: number; limit: number },
): Promise<string[]> {
  let query = offered(db).select('executors.id');
  for (const { holds } of conditions) query = query.where(holds);
  const rows = await query
    .orderBy('price_uusd_per_gpu_hour')
    .orderBy('executors.id')
    .limit(page.limit)
    .offset(page.offset)
    .execute();
  return rows.map(({ id }) => id);
}
