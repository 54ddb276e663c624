/** Looks for nodes on offer by the filters of the list (contract 3.1). */
import { assertPlace, type Funnel, filterNodes, marketPredicates } from './executor.filters.ts';
import { type ExecutorListQuery, MAX_PAGE_SIZE } from './executor.schemas.ts';
import type { MarketNode } from './market.store.ts';
import type { Listed } from './market-view.ts';
import type { NodeNotes } from './node-notes.ts';

/** For a `page` without `size`. */
const DEFAULT_PAGE_SIZE = 100;
/** Answers that are kept of one market. */
const MOST_KEPT = 200;

export type MarketPage = { nodes: readonly MarketNode[]; funnel: Funnel };
export type MarketSearch = (
  listed: readonly Listed[],
  query: ExecutorListQuery,
  notes: NodeNotes,
) => MarketPage;

/** Clients ask the same again and again: a page is kept until the market it was found on has changed. */
export function createMarketSearch(): MarketSearch {
  let market: readonly Listed[] = [];
  const kept = new Map<string, MarketPage>();

  return (listed, query, notes) => {
    // What somebody noted is nobody else's answer.
    if (query.bookmarked !== undefined || query.machine_request_id !== undefined) {
      return searchMarket(listed, query, notes);
    }
    if (listed !== market || kept.size >= MOST_KEPT) kept.clear();
    market = listed;
    const key = JSON.stringify(query);
    const known = kept.get(key);
    if (known !== undefined) return known;
    const page = searchMarket(listed, query, notes);
    if (page.nodes.length <= MAX_PAGE_SIZE) kept.set(key, page);
    return page;
  };
}

/** The page asked for, in the order of `listed`. Throws 422 for a distance without a place. */
export function searchMarket(
  listed: readonly Listed[],
  query: ExecutorListQuery,
  notes: NodeNotes,
): MarketPage {
  assertPlace(query);
  const { items, funnel } = filterNodes(listed, query, notes, marketPredicates(query));
  const { from, to } = pageOf(query);
  return { nodes: items.slice(from, to).map(({ node }) => node), funnel };
}

/** Without `page` and `size` everything. */
function pageOf({ page, size }: ExecutorListQuery): { from: number; to?: number } {
  if (page === undefined && size === undefined) return { from: 0 };
  const limit = size ?? DEFAULT_PAGE_SIZE;
  const from = ((page ?? 1) - 1) * limit;
  return { from, to: from + limit };
}
