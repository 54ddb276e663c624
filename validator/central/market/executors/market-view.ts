/**
 * A copy in memory of the offered nodes, updated before every use with one query for the nodes that changed. Lists,
 * searches, rentals by specification and statistics use it, because reading a hundred thousand nodes from the database
 * takes hundreds of milliseconds.
 */
import type { Database } from '../../platform/database/tables.ts';
import { hasRoom } from './executor-response.ts';
import { listChanges, type MarketChange, type MarketNode } from './market.store.ts';
import { createMarketFigures, type MarketFigures } from './market-figures.ts';
import { subjectOf } from './node-filters.ts';
import type { Listed } from './offer-order.ts';
import { createOffers, type Offers } from './offers.ts';

/** Maximum number of rows per query, so that the first read of a large market does not block the process. */
const PAGE = 2_000;
/** Maximum number of cached machine names: a few hundred exist, but providers may invent more. */
const MAX_NAMES = 10_000;

/**
 * The copy has one entry per node that is not removed. Each call first applies every change that was committed before
 * the call, also by other processes; the result changes in place with later calls.
 */
export type MarketView = {
  /** The offered nodes with enough free GPUs for a rental. */
  offers(): Promise<Offers>;
  /** Figures of all offered nodes, including rented nodes. */
  figures(): Promise<MarketFigures>;
};

/** A node that is not removed. `offered` is null unless the market offers it, `listed` also if it has no room. */
type Entry = { revision: number; offered: MarketNode | null; listed: Listed | null };

export function createMarketView({ db }: { db: Database }): MarketView {
  const byId = new Map<string, Entry>();
  // Shares equal names, so that filters compare references instead of characters.
  const names = new Map<string, string>();
  const market = createOffers();
  const counted = createMarketFigures(() => byId.size);
  let horizon = 0;
  let running: Promise<void> | null = null;
  let next: Promise<void> | null = null;

  async function refresh(): Promise<void> {
    let cursor = { revision: horizon, id: '' };
    let reached: number | null = null;
    const changed = new Map<string, Entry | null>();
    for (;;) {
      const page = await listChanges(db, cursor, PAGE);
      // Of the first page: changes that commit while later pages are read will be read again by the next refresh.
      reached ??= page[0]?.horizon ?? horizon;
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
  function storeChange(changed: Map<string, Entry | null>, change: MarketChange): void {
    const before = byId.get(change.id);
    if (before?.revision === change.revision) return;
    const now = entryOf(change, names);
    if (now !== null || before !== undefined) changed.set(change.id, now);
  }

  function apply(changed: ReadonlyMap<string, Entry | null>): void {
    const removed: Listed[] = [];
    const added: Listed[] = [];
    for (const [id, now] of changed) {
      const before = byId.get(id);
      if (before?.listed) removed.push(before.listed);
      if (before?.offered) counted.remove(before.offered);
      if (now?.listed) added.push(now.listed);
      if (now?.offered) counted.add(now.offered);
      if (now === null) byId.delete(id);
      else byId.set(id, now);
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
    async figures() {
      await upToDate();
      return counted.figures;
    },
  };
}

/** Returns null for a removed node. */
function entryOf(change: MarketChange, names: Map<string, string>): Entry | null {
  const { state, paused, unknown_pods: unknown, opted_in, banned_at, ...node } = change;
  const { revision } = node;
  if (state === 'removed') return null;
  const isOpen = paused === 0 && unknown === 0 && opted_in === 1 && banned_at === null;
  if (state !== 'verified' || !isOpen) return { revision, offered: null, listed: null };
  return { revision, offered: node, listed: hasRoom(node) ? listedOf(node, names) : null };
}

function listedOf(node: MarketNode, names: Map<string, string>): Listed {
  const subject = subjectOf(node, node.price_uusd_per_gpu_hour, node.slots_free);
  const machineName = names.get(subject.machineName) ?? subject.machineName;
  if (names.size >= MAX_NAMES) names.clear();
  names.set(machineName, machineName);
  return { ...subject, machineName, node };
}
