/** Searches the offered nodes by the filters of GET /executors. */

import type { ExecutorListQuery } from './executor.schemas.ts';
import type { MarketNode } from './market.store.ts';
import { applyChange, type Listed, type OfferChange, type Offers } from './market-view.ts';
import type { NodeAnnotations } from './node-annotations.ts';
import {
  assertPlace,
  type Funnel,
  filterNodes,
  marketPredicates,
  type Predicate,
} from './node-filters.ts';

/** Used for a `page` without `size`. */
const DEFAULT_PAGE_SIZE = 100;
/** Limits of the cache: number of results, and of nodes in all results. */
const MAX_RESULTS = 200;
const MAX_CACHED_NODES = 1_000_000;

export type MarketPage = { nodes: readonly MarketNode[]; funnel: Funnel };
export type MarketSearch = (
  offers: Offers,
  query: ExecutorListQuery,
  annotations: NodeAnnotations,
) => MarketPage;

/** Nodes that passed the filters, and the number that each filter left. */
type Found = { nodes: readonly Listed[]; funnel: Funnel };
/** A cached result with the version of the market that it is based on. */
type CachedResult = {
  version: number;
  predicates: readonly Predicate<Listed>[];
  nodes: Listed[];
  funnel: Funnel;
};

/** Caches results, because clients repeat their queries. Only nodes that changed since are filtered again. */
export function createMarketSearch(): MarketSearch {
  // Least recently used first.
  const cache = new Map<string, CachedResult>();

  function keep(key: string, found: CachedResult): void {
    cache.delete(key);
    cache.set(key, found);
    let nodes = 0;
    for (const { nodes: some } of cache.values()) nodes += some.length;
    for (const [oldest, { nodes: some }] of cache) {
      if (cache.size <= MAX_RESULTS && nodes <= MAX_CACHED_NODES) break;
      nodes -= some.length;
      cache.delete(oldest);
    }
  }

  return (offers, query, annotations) => {
    assertPlace(query);
    const predicates = marketPredicates(query, annotations);
    // Annotations differ by caller, and without a filter there is nothing to cache.
    const isPersonal = query.bookmarked !== undefined || query.machine_request_id !== undefined;
    if (isPersonal || predicates.length === 0) return pageOf(find(offers, predicates), query);
    const key = filterKey(query);
    const known = cache.get(key);
    const found = (known && updated(known, offers)) ?? findCacheable(offers, predicates);
    keep(key, found);
    return pageOf(found, query);
  };
}

function find(offers: Offers, predicates: readonly Predicate<Listed>[]): Found {
  const { items, funnel } = filterNodes(offers.nodes, predicates);
  return { nodes: items, funnel };
}

function findCacheable(offers: Offers, predicates: readonly Predicate<Listed>[]): CachedResult {
  const { nodes, funnel } = find(offers, predicates);
  return { version: offers.version, predicates, nodes: [...nodes], funnel };
}

/** Updates the result; null if too much has changed. */
function updated(cache: CachedResult, offers: Offers): CachedResult | null {
  const changes = offers.changesSince(cache.version);
  if (changes === null) return null;
  for (const change of changes) follow(cache, change);
  cache.version = offers.version;
  return cache;
}

function follow({ predicates, funnel, nodes }: CachedResult, change: OfferChange): void {
  const failed = predicates.findIndex(({ keep }) => !keep(change.node));
  const passed = failed < 0 ? predicates.length : failed;
  for (const stage of funnel.slice(0, passed + 1)) stage.remaining += change.isAdded ? 1 : -1;
  if (failed < 0) applyChange(nodes, change);
}

/** Cache key of a query; equal for all pages of the query. */
function filterKey(query: ExecutorListQuery): string {
  return JSON.stringify({ ...query, page: null, size: null, view: null });
}

function pageOf({ nodes, funnel }: Found, query: ExecutorListQuery): MarketPage {
  const { from, to } = boundsOf(query);
  return {
    nodes: nodes.slice(from, to).map(({ node }) => node),
    // Copied, because the cached funnel changes.
    funnel: funnel.map((stage) => ({ ...stage })),
  };
}

/** Range of the requested page; the whole list if both `page` and `size` are absent. */
function boundsOf({ page, size }: ExecutorListQuery): { from: number; to?: number } {
  if (page === undefined && size === undefined) return { from: 0 };
  const limit = size ?? DEFAULT_PAGE_SIZE;
  const from = ((page ?? 1) - 1) * limit;
  return { from, to: from + limit };
}
