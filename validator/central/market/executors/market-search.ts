/** Looks for nodes on offer by the filters of the list (contract 3.1). */
import {
  assertPlace,
  type Funnel,
  filterNodes,
  marketPredicates,
  type Predicate,
} from './executor.filters.ts';
import type { ExecutorListQuery } from './executor.schemas.ts';
import type { MarketNode } from './market.store.ts';
import type { Listed } from './market-view.ts';
import type { NodeNotes } from './node-notes.ts';
import { applyStep, type Offers, type Step } from './offers.ts';

/** For a `page` without `size`. */
const DEFAULT_PAGE_SIZE = 100;
/** Filters whose nodes are kept, and of how many nodes in all. */
const MOST_KEPT = 200;
const MOST_KEPT_NODES = 1_000_000;

export type MarketPage = { nodes: readonly MarketNode[]; funnel: Funnel };
export type MarketSearch = (
  offers: Offers,
  query: ExecutorListQuery,
  notes: NodeNotes,
) => MarketPage;

/** What filters left of the market, and how many each one left. */
type Found = { nodes: readonly Listed[]; funnel: Funnel };
/** The same to be kept, with the version of the market that it is of. */
type Kept = {
  version: number;
  predicates: readonly Predicate<Listed>[];
  nodes: Listed[];
  funnel: Funnel;
};

/** Clients ask the same again and again: what their filters leave is kept, and only changed nodes are looked at anew. */
export function createMarketSearch(): MarketSearch {
  // Asked for longest ago first.
  const kept = new Map<string, Kept>();

  function keep(key: string, found: Kept): void {
    kept.delete(key);
    kept.set(key, found);
    let nodes = 0;
    for (const { nodes: some } of kept.values()) nodes += some.length;
    for (const [oldest, { nodes: some }] of kept) {
      if (kept.size <= MOST_KEPT && nodes <= MOST_KEPT_NODES) break;
      nodes -= some.length;
      kept.delete(oldest);
    }
  }

  return (offers, query, notes) => {
    assertPlace(query);
    const predicates = marketPredicates(query, notes);
    // What somebody noted is nobody else's answer; without any filter there is nothing to keep.
    const isPersonal = query.bookmarked !== undefined || query.machine_request_id !== undefined;
    if (isPersonal || predicates.length === 0) return pageOf(find(offers, predicates), query);
    const key = filterKey(query);
    const known = kept.get(key);
    const found = (known && followed(known, offers)) ?? findToKeep(offers, predicates);
    keep(key, found);
    return pageOf(found, query);
  };
}

function find(offers: Offers, predicates: readonly Predicate<Listed>[]): Found {
  const { items, funnel } = filterNodes(offers.nodes, predicates);
  return { nodes: items, funnel };
}

function findToKeep(offers: Offers, predicates: readonly Predicate<Listed>[]): Kept {
  const { nodes, funnel } = find(offers, predicates);
  return { version: offers.version, predicates, nodes: [...nodes], funnel };
}

/** Up to date; null when too much has changed for that. */
function followed(kept: Kept, offers: Offers): Kept | null {
  const steps = offers.stepsSince(kept.version);
  if (steps === null) return null;
  for (const step of steps) follow(kept, step);
  kept.version = offers.version;
  return kept;
}

function follow({ predicates, funnel, nodes }: Kept, step: Step): void {
  const failed = predicates.findIndex(({ keep }) => !keep(step.node));
  const passed = failed < 0 ? predicates.length : failed;
  for (const stage of funnel.slice(0, passed + 1)) stage.remaining += step.isIn ? 1 : -1;
  if (failed < 0) applyStep(nodes, step);
}

/** The same for every page of the same filters. */
function filterKey(query: ExecutorListQuery): string {
  return JSON.stringify({ ...query, page: null, size: null, view: null });
}

/** In the order of the market. */
function pageOf({ nodes, funnel }: Found, query: ExecutorListQuery): MarketPage {
  const { from, to } = boundsOf(query);
  return {
    nodes: nodes.slice(from, to).map(({ node }) => node),
    // The one kept moves with the market.
    funnel: funnel.map((stage) => ({ ...stage })),
  };
}

/** Without `page` and `size` everything. */
function boundsOf({ page, size }: ExecutorListQuery): { from: number; to?: number } {
  if (page === undefined && size === undefined) return { from: 0 };
  const limit = size ?? DEFAULT_PAGE_SIZE;
  const from = ((page ?? 1) - 1) * limit;
  return { from, to: from + limit };
}
