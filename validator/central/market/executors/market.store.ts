/** Queries on offered nodes and their changes. No query reads an inventory. */
import { type RawBuilder, sql } from 'kysely';
import { isPostgres } from '../../../database/engine.ts';
import { prepared, type Slots } from '../../platform/database/prepared.ts';
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

/** A change, with a revision such that every change committed after the query has this or a higher revision. */
export type HorizonChange = MarketChange & { horizon: number };

/**
 * Nodes changed after the cursor, in the order of change; at most `limit`. On PostgreSQL the horizon is the oldest
 * running transaction, because later transactions may commit first, so some changes are read twice.
 */
export async function listChanges(
  db: Db,
  after: ChangeCursor,
  limit: number,
): Promise<HorizonChange[]> {
  return (await changesAfter(db, { ...after, limit })).rows;
}

const changesAfter = prepared(
  (db, { revision, id, limit }: Slots<ChangeCursor & { limit: number }>) =>
    market(db)
      .select(horizonOf(db).as('horizon'))
      .where(sql<boolean>`(revision, executors.id) > (${revision}, ${id})`)
      .orderBy('revision')
      .orderBy('executors.id')
      .limit(limit),
);

function horizonOf(db: Db): RawBuilder<number> {
  return isPostgres(db)
    ? sql`(select pg_snapshot_xmin(pg_current_snapshot())::text::bigint)`
    : sql`(select max(revision) + 1 from executors)`;
}
