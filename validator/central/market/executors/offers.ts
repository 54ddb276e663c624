/** The offered nodes with enough free GPUs for a rental, cheapest first, with their latest changes. */
import type { MarketNode } from './market.store.ts';
import type { FilterSubject } from './node-filters.ts';

/** An offered node with enough free GPUs for a rental. Counts are of free GPUs. */
export type Listed = FilterSubject & { node: MarketNode };

/** A node that was added (`isAdded`) or removed. A changed node is first removed and then added. */
export type OfferChange = { node: Listed; isAdded: boolean };

export type Offers = {
  /** Cheapest first, then by id. The array changes in place, so it is valid until the next `await`. */
  readonly nodes: readonly Listed[];
  /** Increases with every change. */
  readonly version: number;
  /** Changes after the given version, oldest first; null if they are no longer stored. */
  changesSince(version: number): readonly OfferChange[] | null;
};

/** Number of changes above which one pass over all nodes is faster than a search for each change. */
const MAX_SINGLE_CHANGES = 100;
/** Maximum number of stored changes. */
const MAX_CHANGES = 1_000;

/** Starts with no offers. */
export function createOffers() {
  const changes: OfferChange[] = [];
  let nodes: Listed[] = [];
  let version = 0;

  function applyAtOnce(removed: ReadonlySet<Listed>, added: readonly Listed[]): void {
    const stay = nodes.filter((node) => !removed.has(node));
    nodes = [...stay, ...added].sort(byPrice);
    changes.length = 0;
    version += 1;
  }

  function applyOneByOne(applied: readonly OfferChange[]): void {
    for (const change of applied) applyChange(nodes, change);
    changes.push(...applied);
    changes.splice(0, changes.length - MAX_CHANGES);
    version += applied.length;
  }

  const offers: Offers = {
    get nodes() {
      return nodes;
    },
    get version() {
      return version;
    },
    changesSince(since) {
      const missed = version - since;
      return missed > changes.length ? null : changes.slice(changes.length - missed);
    },
  };

  return {
    offers,
    apply(removed: readonly Listed[], added: readonly Listed[]): void {
      const all = removed.length + added.length;
      if (all > MAX_SINGLE_CHANGES) applyAtOnce(new Set(removed), added);
      else if (all > 0) {
        applyOneByOne([
          ...removed.map((node) => ({ node, isAdded: false })),
          ...added.map((node) => ({ node, isAdded: true })),
        ]);
      }
    },
  };
}

/** Applies a change to a list in the order of `nodes`. */
export function applyChange(nodes: Listed[], { node, isAdded }: OfferChange): void {
  const at = indexOf(nodes, node);
  if (isAdded) nodes.splice(at, 0, node);
  else if (nodes[at] === node) nodes.splice(at, 1);
}

/** Index of the node, or the index at which it would be inserted. */
function indexOf(nodes: readonly Listed[], node: Listed): number {
  let from = 0;
  let to = nodes.length;
  while (from < to) {
    const middle = (from + to) >>> 1;
    const other = nodes[middle];
    if (other !== undefined && byPrice(other, node) < 0) from = middle + 1;
    else to = middle;
  }
  return from;
}

function byPrice({ node: a }: Listed, { node: b }: Listed): number {
  const difference = a.price_uusd_per_gpu_hour - b.price_uusd_per_gpu_hour;
  return difference === 0 ? order(a.id, b.id) : difference;
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
