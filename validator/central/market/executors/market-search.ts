/** Searches the offered nodes by the filters of GET /executors. */

import type { Funnel, NearestNode } from './constraints.ts';
import type { MarketNode } from './market.store.ts';
import type { NodeAnnotations } from './node-annotations.ts';
import type { ExecutorListQuery } from './node-filters.schemas.ts';
import { marketConstraints } from './node-filters.ts';
import { createOfferFilter, type Filtered } from './offer-filter.ts';
import type { OfferMatches } from './offer-matches.ts';
import type { Listed } from './offer-order.ts';
import type { Offers } from './offers.ts';
import { assertPlace } from './place-constraints.ts';

/** Used for a `page` without `size`. */
const DEFAULT_PAGE_SIZE = 100;

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

/** Creates the search with an empty cache. */
export function createMarketSearch(): MarketSearch {
  const filter = createOfferFilter(OFFERED);

  return (offers, query, annotations) => {
    assertPlace(query);
    const found = filter(offers, marketConstraints(query, annotations), filterKey(query));
    const { from, to } = boundsOf(query);
    return {
      nodes: Iterator.from(inOrder(found.left, query))
        .drop(from)
        .take(to - from)
        .map(({ node }) => node)
        .toArray(),
      // Copied, because the funnel in the cache changes.
      funnel: found.funnel.map((stage) => ({ ...stage })),
      ...(query.explain === true ? unmetOf(found) : MET),
    };
  };
}

function inOrder(left: OfferMatches, { sort, page, size }: ExecutorListQuery): Iterable<Listed> {
  if (sort === 'reliability') return left.byScore();
  return page === undefined && size === undefined ? left.toArray() : left;
}

type UnmetPart = Pick<MarketPage, 'nearest' | 'withoutLocation'>;

/** Explanation of a search that found nodes, or for which no explanation was requested. */
const MET: UnmetPart = { nearest: [], withoutLocation: null };

function unmetOf({ unmet }: Filtered): UnmetPart {
  if (unmet === null) return MET;
  const { nearest, withoutLocation } = unmet.explain();
  return { nearest, withoutLocation };
}

/** Cache key of a query, equal for all its pages; null if its annotations differ by caller or with time. */
function filterKey(query: ExecutorListQuery): string | null {
  const { bookmarked, machine_request_id: requestId, max_check_age_minutes: age } = query;
  if (bookmarked !== undefined || requestId !== undefined || age !== undefined) return null;
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
function boundsOf({ page, size }: ExecutorListQuery): { from: number; to: number } {
  if (page === undefined && size === undefined) return { from: 0, to: Number.POSITIVE_INFINITY };
  const limit = size ?? DEFAULT_PAGE_SIZE;
  const from = ((page ?? 1) - 1) * limit;
  return { from, to: from + limit };
}
