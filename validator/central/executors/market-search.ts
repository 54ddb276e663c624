/** Looks for nodes on offer: in the database where it can, else one by one (contract 3.1). */
import type { Db } from '../db/tables.ts';
import {
  assertPlace,
  type Funnel,
  filterNodes,
  marketPredicates,
  marketSubject,
} from './executor.filters.ts';
import { hasRoom } from './executor.row.ts';
import type { ExecutorListQuery } from './executor.schemas.ts';
import { countAfterEach, idsWhere, listMarket } from './market.store.ts';
import { conditionsOf, ROOM } from './market-conditions.store.ts';
import type { NodeNotes } from './node-notes.ts';

/** For a `page` without `size`. */
const DEFAULT_PAGE_SIZE = 100;
/** What a list without a page is cut off at. */
const MAX_LIST = 1_000_000;
export type MarketPage = { ids: string[]; funnel: Funnel };

/** Throws 422 for a distance without a place. */
export async function searchMarket(
  db: Db,
  query: ExecutorListQuery,
  notes: NodeNotes,
): Promise<MarketPage> {
  assertPlace(query);
  return needsLook(query, notes) ? lookThrough(db, query, notes) : select(db, query, notes);
}

/** How many nodes somebody could rent. */
export async function countRentable(db: Db): Promise<number> {
  const [count] = await countAfterEach(db, [ROOM]);
  return count?.remaining ?? 0;
}

/** What is judged outside the database. */
function needsLook(query: ExecutorListQuery, { asked }: NodeNotes): boolean {
  const { max_distance_mile, min_download_mbps } = query;
  return asked !== null || max_distance_mile !== undefined || min_download_mbps !== undefined;
}

/** One by one. */
export async function lookThrough(
  db: Db,
  query: ExecutorListQuery,
  notes: NodeNotes,
): Promise<MarketPage> {
  const offered = (await listMarket(db)).filter(hasRoom);
  const more = marketPredicates(query);
  const { items, funnel } = filterNodes(offered, marketSubject, query, notes, more);
  const { offset, limit } = pageOf(query);
  return { ids: items.slice(offset, offset + limit).map(({ id }) => id), funnel };
}

async function select(db: Db, query: ExecutorListQuery, notes: NodeNotes): Promise<MarketPage> {
  const conditions = [ROOM, ...conditionsOf(query, notes)];
  const funnel = await countAfterEach(db, conditions);
  return { ids: await idsWhere(db, conditions, pageOf(query)), funnel };
}

function pageOf({ page, size }: ExecutorListQuery): { offset: number; limit: number } {
  if (page === undefined && size === undefined) return { offset: 0, limit: MAX_LIST };
  const limit = size ?? DEFAULT_PAGE_SIZE;
  return { offset: Math.min(((page ?? 1) - 1) * limit, Number.MAX_SAFE_INTEGER), limit };
}
