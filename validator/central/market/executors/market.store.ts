/** Queries on offered nodes, and on figures of all offered nodes. No query reads an inventory. */
import { type RawBuilder, sql } from 'kysely';
import { isPostgres } from '../../../database/engine.ts';
import type { LineFigures, MeasuredFigures } from '../../platform/database/tables/executors.ts';
import type { Db, Executor } from '../../platform/database/tables.ts';

/** Columns by which nodes are filtered, sorted and listed, except those of the inventory. */
export type MarketNode = MeasuredFigures &
  LineFigures &
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
    | 'first_verified_at'
    | 'reliability_permille'
    | 'reachable_since'
    | 'revision'
  >;

/** A node that was added or changed, whether or not it is offered. */
export type MarketChange = MarketNode &
  Pick<Executor, 'state' | 'paused' | 'unknown_pods'> & {
    opted_in: 0 | 1;
    banned_at: number | null;
  };

function market(db: Db) {
  return db
    .selectFrom('executors')
    .innerJoin('providers', 'providers.id', 'executors.provider_id')
    .select([
      ...(['executors.id', 'gpu_type', 'gpu_count', 'machine_name', 'min_gpu_count'] as const),
      ...(['price_uusd_per_gpu_hour', 'collateral_deposited'] as const),
      ...(['lat', 'lon', 'location_json', 'first_verified_at', 'revision'] as const),
      ...(['reliability_permille', 'reachable_since'] as const),
      ...(['gpu_memory_mib', 'cpu_cores', 'memory_kib', 'disk_free_kib', 'ports_free'] as const),
      ...(['sysbox_runtime', 'can_split', 'nvlink'] as const),
      ...(['slots_total', 'slots_free', 'download_mbps', 'upload_mbps'] as const),
      ...(['state', 'paused', 'unknown_pods', 'opted_in', 'banned_at'] as const),
    ]);
}

/** Finds an offered node: verified, not paused, without unknown pods, and of a participating provider. */
export async function findOnMarket(db: Db, id: string): Promise<MarketNode | undefined> {
  return market(db)
    .where('executors.id', '=', id)
    .where('state', '=', 'verified')
    .where('paused', '=', 0)
    .where('unknown_pods', '=', 0)
    .where('providers.opted_in', '=', 1)
    .where('providers.banned_at', 'is', null)
    .executeTakeFirst();
}

/**
 * Returns a revision such that every change committed after this call has this or a higher revision. On PostgreSQL it
 * is the oldest running transaction, because later transactions may commit first, so some changes are read twice.
 */
export async function changeHorizon(db: Db): Promise<number> {
  const { rows } = isPostgres(db)
    ? await sql<{
        n: number;
      }>`select pg_snapshot_xmin(pg_current_snapshot())::text::bigint as n`.execute(db)
    : await sql<{ n: number }>`select coalesce(max(revision), -1) + 1 as n from executors`.execute(
        db,
      );
  return rows[0]?.n ?? 0;
}

/**
 * Resets the revisions of another PostgreSQL cluster. Call once before the first use. A cluster to which this database
 * was moved counts its transactions from a lower number, so revisions of the old cluster would exceed every horizon.
 */
export async function resetForeignRevisions(db: Db): Promise<void> {
  if (!isPostgres(db)) return;
  await sql`update executors set revision = 0
    where revision >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint`.execute(db);
}

/** Position in the order of changes. */
export type ChangeCursor = { revision: number; id: string };

/** Nodes changed after the cursor, in the order of change; at most `limit`. */
export async function listChanges(
  db: Db,
  after: ChangeCursor,
  limit: number,
): Promise<MarketChange[]> {
  return market(db)
    .where(sql<boolean>`(revision, executors.id) > (${after.revision}, ${after.id})`)
    .orderBy('revision')
    .orderBy('executors.id')
    .limit(limit)
    .execute();
}

const MACHINE = sql<string>`coalesce(machine_name, gpu_type)`;
const TOTAL = sql<number>`case when slots_total > 0 then slots_total else executors.gpu_count end`;
const PRICE = sql.ref('price_uusd_per_gpu_hour');

const sumOf = (figure: RawBuilder<number>) => sql<number>`sum(${figure})`;
const countOf = (holds: RawBuilder<boolean>) =>
  sql<number>`sum(case when ${holds} then 1 else 0 end)`;

/** Offered nodes: verified, not paused, without unknown pods, and of a participating provider. */
function offered(db: Db) {
  return db
    .selectFrom('executors')
    .innerJoin('providers', 'providers.id', 'executors.provider_id')
    .where('state', '=', 'verified')
    .where('paused', '=', 0)
    .where('unknown_pods', '=', 0)
    .where('providers.opted_in', '=', 1)
    .where('providers.banned_at', 'is', null);
}

/** Figures of one machine. Prices in micro-dollars per GPU and hour. */
export type MachineFigures = {
  machine: string;
  nodes: number;
  available_nodes: number;
  gpus: number;
  free_gpus: number;
  min_price: number;
  max_price: number;
  price_sum: number;
};

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

/**
 * Figures for one machine and GPU count: the number of nodes that can rent out `size` GPUs at once (`able`), the number
 * of nodes with that many free GPUs (`free`), and the lowest price.
 */
export type SizeFigures = {
  machine: string;
  size: number;
  able: number;
  free: number;
  /** 0 if no node can rent out that many GPUs. */
  min_price: number;
};

/** Every machine with every size, in one query. Cheapest machine first, then by name. */
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
