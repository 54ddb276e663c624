/** The offered nodes with enough free GPUs for a rental, cheapest first, with their latest changes and indexes. */
import { createOfferIndex, type OfferIndex } from './offer-index.ts';
import { byPrice, type Listed, listAfter, MAX_SINGLE_CHANGES } from './offer-order.ts';

/** A node that was added (`isAdded`) or removed. A changed node is first removed and then added. */
export type OfferChange = { node: Listed; isAdded: boolean };

export type Offers = {
  /** Cheapest first, then by id. The array changes in place, so it is valid until the next `await`. */
  readonly nodes: readonly Listed[];
  readonly index: OfferIndex;
  /** Increases with every change. */
  readonly version: number;
  /** Changes after the given version, oldest first; null if they are no longer stored. */
  changesSince(version: number): readonly OfferChange[] | null;
};

/** Maximum number of stored changes. */
const MAX_CHANGES = 1_000;

/** Starts with no offers. */
export function createOffers() {
  const changes: OfferChange[] = [];
  const indexed = createOfferIndex();
  let nodes: Listed[] = [];
  let version = 0;

  /** Many changes at once are not stored: a result in a cache is then computed again. */
  function storeChanges(applied: readonly OfferChange[]): void {
    if (applied.length > MAX_SINGLE_CHANGES) {
      changes.length = 0;
      version += 1;
      return;
    }
    changes.push(...applied);
    changes.splice(0, changes.length - MAX_CHANGES);
    version += applied.length;
  }

  const offers: Offers = {
    index: indexed.index,
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
      nodes = listAfter(nodes, removed, added, byPrice);
      indexed.apply(removed, added);
      storeChanges([
        ...removed.map((node) => ({ node, isAdded: false })),
        ...added.map((node) => ({ node, isAdded: true })),
      ]);
    },
  };
}

/** Applies a change to a list in the order of `nodes`. */
export function applyChange(nodes: Listed[], { node, isAdded }: OfferChange): void {
  listAfter(nodes, isAdded ? [] : [node], isAdded ? [node] : [], byPrice);
}
