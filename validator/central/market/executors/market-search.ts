/** Searches the offered nodes by the filters of GET /executors. */

import {
  applyConstraints,
  type Constraint,
  countWithoutLocation,
  type Funnel,
  type NearestNode,
  nearestTo,
} from './constraints.ts';
import type { MarketNode } from './market.store.ts';
import { applyChange, type Listed, type OfferChange, type Offers } from './market-view.ts';
import type { NodeAnnotations } from './node-annotations.ts';
import type { ExecutorListQuery } from './node-filters.schemas.ts';
import { marketConstraints } from './node-filters.ts';
import { assertPlace } from './place-constraints.ts';

/** Used for a `page` without `size`. */
const DEFAULT_PAGE_SIZE = 100;
/** Limits of the cache: number of results, and of nodes in all results. */
const MAX_RESULTS = 200;
const MAX_CACHED_NODES = 1_000_000;

/** First entry of the funnel: nodes with enough free GPUs for a rental. */
const OFFERED = 'offered';

export type MarketPage = {
  nodes: readonly MarketNode[];
  funnel: Funnel;
  /** Nodes nearest to the first filter that left none. Empty if nodes are left, or if the query does not request it. */
  nearest: NearestNode[];
  /** Number of nodes without a location that this filter rejected; null for filters that do not concern the place. */
  withoutLocation: number | null;
};
export type MarketSearch = (
  offers: Offers,
  query: ExecutorListQuery,
  annotations: NodeAnnotations,
) => MarketPage;

/** Nodes that passed the filters, and the number that each filter left. */
type Found = { nodes: readonly Listed[]; funnel: Funnel };
/** A cached result, with the version of the market from which it was computed. */
type CachedResult = {
  version: number;
  constraints: readonly Constraint<Listed>[];
  nodes: Listed[];
  funnel: Funnel;
};

/**
 * Caches results, because clients repeat their queries. For a repeated query, only nodes that changed are filtered
 * again.
 */
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

  function searchFor(
    offers: Offers,
    query: ExecutorListQuery,
    constraints: readonly Constraint<Listed>[],
  ): Found {
    // Not cached: annotations differ by caller, and without a filter there is nothing to cache.
    const isPersonal = query.bookmarked !== undefined || query.machine_request_id !== undefined;
    if (isPersonal || constraints.length === 0) return find(offers, constraints);
    const key = filterKey(query);
    const known = cache.get(key);
    const found = (known && updated(known, offers)) ?? findCacheable(offers, constraints);
    keep(key, found);
    return found;
  }

  return (offers, query, annotations) => {
    assertPlace(query);
    const constraints = marketConstraints(query, annotations);
    const { nodes, funnel } = searchFor(offers, query, constraints);
    const { from, to } = boundsOf(query);
    return {
      nodes: sorted(nodes, query.sort)
        .slice(from, to)
        .map(({ node }) => node),
      // Copied, because the funnel in the cache changes.
      funnel: funnel.map((stage) => ({ ...stage })),
      ...(query.explain === true && nodes.length === 0 ? unmetOf(offers, constraints) : MET),
    };
  };
}

const HIGHEST_PERMILLE = 1_000;

/** Sorts nodes. They are already sorted by price; for scores, one bucket per score takes linear time. */
function sorted(nodes: readonly Listed[], by: ExecutorListQuery['sort']): readonly Listed[] {
  if (by !== 'reliability') return nodes;
  const unknown: Listed[] = [];
  const buckets = Array.from({ length: HIGHEST_PERMILLE + 1 }, (): Listed[] => []);
  for (const listed of nodes) {
    const { reliability_permille: score } = listed.node;
    (score === null ? unknown : buckets[score])?.push(listed);
  }
  return [...buckets.reverse(), unknown].flat();
}

function find(offers: Offers, constraints: readonly Constraint<Listed>[]): Found {
  const { left, funnel } = applyConstraints(OFFERED, offers.nodes, constraints);
  return { nodes: left, funnel };
}

function findCacheable(offers: Offers, constraints: readonly Constraint<Listed>[]): CachedResult {
  const { nodes, funnel } = find(offers, constraints);
  return { version: offers.version, constraints, nodes: [...nodes], funnel };
}

type UnmetPart = Pick<MarketPage, 'nearest' | 'withoutLocation'>;

/** Explanation of a search that found nodes, or for which no explanation was requested. */
const MET: UnmetPart = { nearest: [], withoutLocation: null };

function unmetOf(offers: Offers, constraints: readonly Constraint<Listed>[]): UnmetPart {
  const { unmet } = applyConstraints(OFFERED, offers.nodes, constraints);
  if (unmet === null) return MET;
  return { nearest: nearestTo(unmet), withoutLocation: countWithoutLocation(unmet) };
}

/** Updates the result; returns null if too much has changed. */
function updated(cache: CachedResult, offers: Offers): CachedResult | null {
  const changes = offers.changesSince(cache.version);
  if (changes === null) return null;
  for (const change of changes) follow(cache, change);
  cache.version = offers.version;
  return cache;
}

function follow({ constraints, funnel, nodes }: CachedResult, change: OfferChange): void {
  const failed = constraints.findIndex(({ keep }) => !keep(change.node));
  const passed = failed < 0 ? constraints.length : failed;
  for (const stage of funnel.slice(0, passed + 1)) stage.remaining += change.isAdded ? 1 : -1;
  if (failed < 0) applyChange(nodes, change);
}

/** Cache key of a query; equal for all pages of the query. */
function filterKey(query: ExecutorListQuery): string {
  return JSON.stringify({
    ...query,
    page: null,
    size: null,
    view: null,
    explain: null,
    sort: null,
  });
}

/** Range of the requested page; the whole list if both `page` and `size` are absent. */
function boundsOf({ page, size }: ExecutorListQuery): { from: number; to?: number } {
  if (page === undefined && size === undefined) return { from: 0 };
  const limit = size ?? DEFAULT_PAGE_SIZE;
  const from = ((page ?? 1) - 1) * limit;
  return { from, to: from + limit };
}
