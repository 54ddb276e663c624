/** The nodes on offer, with what they are looked for by: no inventory is read for it. */

import { sql } from 'kysely';
import { isPostgres } from '../../../database/engine.ts';
import type { LineFigures, MeasuredFigures } from '../../platform/database/tables/executors.ts';
import type { Db, Executor } from '../../platform/database/tables.ts';

/** What a node is looked for by, sorted by and shown with, but for what its inventory says. */
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
    | 'revision'
  >;

/** A node that came or changed, on offer or not. */
export type MarketChange = MarketNode &
  Pick<Executor, 'state' | 'paused'> & { opted_in: 0 | 1; banned_at: number | null };

function market(db: Db) {
  return db
    .selectFrom('executors')
    .innerJoin('providers', 'providers.id', 'executors.provider_id')
    .select([
      ...(['executors.id', 'gpu_type', 'gpu_count', 'machine_name', 'min_gpu_count'] as const),
      ...(['price_uusd_per_gpu_hour', 'collateral_deposited'] as const),
      ...(['lat', 'lon', 'location_json', 'first_verified_at', 'revision'] as const),
      ...(['gpu_memory_mib', 'cpu_cores', 'memory_kib', 'disk_free_kib', 'ports_free'] as const),
      ...(['sysbox_runtime', 'can_split', 'nvlink'] as const),
      ...(['slots_total', 'slots_free', 'download_mbps', 'upload_mbps'] as const),
      ...(['state', 'paused', 'opted_in', 'banned_at'] as const),
    ]);
}

/** One node, unless it is not on offer: verified, not paused, of a provider that takes part. */
export async function findOnMarket(db: Db, id: string): Promise<MarketNode | undefined> {
  return market(db)
    .where('executors.id', '=', id)
    .where('state', '=', 'verified')
    .where('paused', '=', 0)
    .where('providers.opted_in', '=', 1)
    .where('providers.banned_at', 'is', null)
    .executeTakeFirst();
}

/**
 * Every change that is committed after this answer has this `revision` or a higher one. On PostgreSQL that is the
 * oldest transaction under way, for later ones may commit before it: some changes are then read twice.
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
 * To be called once before the first use. A PostgreSQL cluster that this database was moved to counts its
 * transactions anew: revisions of the old one would lie before every horizon, and be read again each time.
 */
export async function forgetForeignRevisions(db: Db): Promise<void> {
  if (!isPostgres(db)) return;
  await sql`update executors set revision = 0
    where revision >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint`.execute(db);
}

/** Where in the order of changes a page ended. */
export type ChangeCursor = { revision: number; id: string };

/** Nodes changed at or after the cursor, in the order of change; at most `limit`. */
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
