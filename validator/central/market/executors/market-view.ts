/**
 * A copy in memory of the offered nodes with enough free GPUs for a rental, updated before every use. It filters a
 * hundred thousand nodes in a millisecond, while counting the nodes that each filter leaves takes tens of milliseconds
 * in the database.
 */
import type { Database } from '../../platform/database/tables.ts';
import { hasRoom } from './executor-response.ts';
import { changeHorizon, listChanges, type MarketChange, type MarketNode } from './market.store.ts';
import { type FilterSubject, subjectOf } from './node-filters.ts';

/** Maximum number of rows per query, so that the first read of a large market does not block the process. */
const PAGE = 2_000;
/** Maximum number of cached machine names: a few hundred exist, but providers may invent more. */
const MAX_NAMES = 10_000;

/** An offered node with enough free GPUs for a rental. Counts are of free GPUs. */
export type Listed = FilterSubject & { node: MarketNode };

export type MarketView = {
  /** The offered nodes with enough free GPUs for a rental, including every change committed before the call. */
  offers(): Promise<Offers>;
};

export function createMarketView({ db }: { db: Database }): MarketView {
  const byId = new Map<string, Listed>();
  // Shares equal names, so that filters compare references instead of characters.
  const names = new Map<string, string>();
  const market = createOffers();
  let horizon = 0;
  let running: Promise<void> | null = null;
  let next: Promise<void> | null = null;

  async function refresh(): Promise<void> {
    // Read first: changes that commit while the pages are read will be read again by the next refresh.
    const reached = await changeHorizon(db);
    let cursor = { revision: horizon, id: '' };
    const changed = new Map<string, Listed | null>();
    for (;;) {
      const page = await listChanges(db, cursor, PAGE);
      for (const change of page) storeChange(changed, change);
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE) break;
      cursor = { revision: last.revision, id: last.id };
    }
    apply(changed);
    horizon = reached;
  }

  /**
   * Stores a change. Skips revisions that are already stored, because on PostgreSQL some changes are read repeatedly.
   */
  function storeChange(changed: Map<string, Listed | null>, change: MarketChange): void {
    const before = byId.get(change.id);
    if (before?.node.revision === change.revision) return;
    const now = listedOf(change, names);
    if (now !== null || before !== undefined) changed.set(change.id, now);
  }

  function apply(changed: ReadonlyMap<string, Listed | null>): void {
    const removed: Listed[] = [];
    const added: Listed[] = [];
    for (const [id, now] of changed) {
      const before = byId.get(id);
      if (before !== undefined) removed.push(before);
      if (now === null) byId.delete(id);
      else {
        byId.set(id, now);
        added.push(now);
      }
    }
    market.apply(removed, added);
  }

  /** Runs one refresh at a time. A refresh that began before the call may have missed changes of the caller. */
  function upToDate(): Promise<void> {
    if (running === null) {
      running = refresh().finally(() => {
        running = null;
      });
      return running;
    }
    next ??= running
      .catch(() => undefined)
      .then(() => {
        next = null;
        return upToDate();
      });
    return next;
  }

  return {
    async offers() {
      await upToDate();
      return market.offers;
    },
  };
}

function listedOf(change: MarketChange, names: Map<string, string>): Listed | null {
  const { state, paused, unknown_pods: unknown, opted_in, banned_at, ...node } = change;
  const isOpen = paused === 0 && unknown === 0 && opted_in === 1 && banned_at === null;
  if (state !== 'verified' || !isOpen || !hasRoom(node)) return null;
  const subject = subjectOf(node, node.price_uusd_per_gpu_hour, node.slots_free);
  const machineName = names.get(subject.machineName) ?? subject.machineName;
  if (names.size >= MAX_NAMES) names.clear();
  names.set(machineName, machineName);
  return { ...subject, machineName, node };
}

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
