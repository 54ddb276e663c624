/** The nodes on offer in sums by machine, reckoned by the database: no row leaves it. */
import { type RawBuilder, sql } from 'kysely';
import type { Db } from '../../platform/database/tables.ts';

const MACHINE = sql<string>`coalesce(machine_name, gpu_type)`;
const TOTAL = sql<number>`case when slots_total > 0 then slots_total else executors.gpu_count end`;
const PRICE = sql.ref('price_uusd_per_gpu_hour');

const sumOf = (figure: RawBuilder<number>) => sql<number>`sum(${figure})`;
const countOf = (holds: RawBuilder<boolean>) =>
  sql<number>`sum(case when ${holds} then 1 else 0 end)`;

/** Verified, not paused, of a provider that takes part. */
function offered(db: Db) {
  return db
    .selectFrom('executors')
    .innerJoin('providers', 'providers.id', 'executors.provider_id')
    .where('state', '=', 'verified')
    .where('paused', '=', 0)
    .where('providers.opted_in', '=', 1)
    .where('providers.banned_at', 'is', null);
}

/** All nodes of one machine. Prices in micro-dollars per GPU and hour. */
export type MachineFigures = {
  machine: string;
  nodes: number;
  /** Nodes with a free GPU. */
  available_nodes: number;
  gpus: number;
  free_gpus: number;
  min_price: number;
  max_price: number;
  price_sum: number;
};

/** Cheapest first, then by name. */
export async function figuresByMachine(db: Db): Promise<MachineFigures[]> {
  return offered(db)
    .select((eb) => [
      MACHINE.as('machine'),
      eb.fn.countAll<number>().as('nodes'),
      countOf(sql`slots_free > 0`).as('available_nodes'),
      sumOf(TOTAL).as('gpus'),
      sumOf(sql`slots_free`).as('free_gpus'),
      sql<number>`min(${PRICE})`.as('min_price'),
      sql<number>`max(${PRICE})`.as('max_price'),
      sumOf(sql`${PRICE}`).as('price_sum'),
    ])
    .groupBy(MACHINE)
    .orderBy('min_price')
    .orderBy('machine')
    .execute();
}

/** Nodes of one machine that rent out `size` GPUs at once, those with as many free, and their lowest price. */
export type SizeFigures = {
  machine: string;
  size: number;
  able: number;
  free: number;
  /** 0 where no node is able to. */
  min_price: number;
};

/** Each machine with each size, in one look at the market; ordered as above. */
export async function figuresBySize(db: Db, sizes: readonly number[]): Promise<SizeFigures[]> {
  const columns = sizes.flatMap((size) => {
    const able = sql<boolean>`${TOTAL} >= ${size} and coalesce(min_gpu_count, ${TOTAL}) <= ${size}`;
    return [
      countOf(able).as(`able_${size}`),
      countOf(sql`${able} and slots_free >= ${size}`).as(`free_${size}`),
      sql<number | null>`min(case when ${able} then ${PRICE} end)`.as(`price_${size}`),
    ];
  });
  const rows: Record<string, string | number | null>[] = await offered(db)
    .select([MACHINE.as('machine'), sql<number>`min(${PRICE})`.as('cheapest')])
    .select(columns)
    .groupBy(MACHINE)
    .orderBy('cheapest')
    .orderBy('machine')
    .execute();
  return rows.flatMap((row) =>
    sizes.map((size) => ({
      machine: String(row['machine']),
      size,
      able: Number(row[`able_${size}`]),
      free: Number(row[`free_${size}`]),
      min_price: Number(row[`price_${size}`]),
    })),
  );
}
