/** Looks for nodes on offer by the filters of the list (contract 3.1). Pure. */
import { assertPlace, type Funnel, filterNodes, marketPredicates } from './executor.filters.ts';
import type { ExecutorListQuery } from './executor.schemas.ts';
import type { MarketNode } from './market.store.ts';
import type { Listed } from './market-view.ts';

/** For a `page` without `size`. */
const DEFAULT_PAGE_SIZE = 100;

export type MarketPage = { nodes: MarketNode[]; funnel: Funnel };

/** The page asked for, in the order of `listed`. Throws 422 for a distance without a place. */
export function searchMarket(listed: readonly Listed[], query: ExecutorListQuery): MarketPage {
  assertPlace(query);
  const { items, funnel } = filterNodes(
    listed,
    ({ subject }) => subject,
    query,
    marketPredicates(query),
  );
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
