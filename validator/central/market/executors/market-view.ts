/**
 * The nodes with room as this process knows them: a copy of what the database says, brought up to date before every
 * use. A search looks at a hundred thousand nodes in a millisecond here; in the database, counting what each filter
 * leaves takes tens of them.
 */
import type { Database } from '../../platform/database/tables.ts';
import { type FilterSubject, subjectOf } from './executor.filters.ts';
import { hasRoom } from './executor.row.ts';
import { changeHorizon, listChanges, type MarketChange, type MarketNode } from './market.store.ts';
import { createOffers, type Offers } from './offers.ts';

/** Rows that are read at a time, so that the first look at a large market holds up nobody. */
const PAGE = 2_000;
/** Of machines: there are some hundreds, and what providers make up is not kept for ever. */
const MOST_NAMES = 10_000;

/** A node with room, ready to be looked at by filters: counts are of free GPUs. */
export type Listed = FilterSubject & { node: MarketNode };

export type MarketView = {
  /** Nodes with room, with everything that was committed before the call. */
  offers(): Promise<Offers>;
};

export function createMarketView({ db }: { db: Database }): MarketView {
  const byId = new Map<string, Listed>();
  // Each name once: the database gives every row a copy, and filters would compare them letter by letter.
  const names = new Map<string, string>();
  const market = createOffers();
  let horizon = 0;
  let running: Promise<void> | null = null;
  let next: Promise<void> | null = null;

  async function refresh(): Promise<void> {
    // Read first: what is committed while the pages are read comes again with the next refresh.
    const reached = await changeHorizon(db);
    let cursor = { revision: horizon, id: '' };
    const changed = new Map<string, Listed | null>();
    for (;;) {
      const page = await listChanges(db, cursor, PAGE);
      for (const change of page) note(changed, change);
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE) break;
      cursor = { revision: last.revision, id: last.id };
    }
    apply(changed);
    horizon = reached;
  }

  /** Unless it is known: on PostgreSQL some changes are read again and again. */
  function note(changed: Map<string, Listed | null>, change: MarketChange): void {
    const before = byId.get(change.id);
    if (before?.node.revision === change.revision) return;
    const now = listedOf(change, names);
    if (now !== null || before !== undefined) changed.set(change.id, now);
  }

  function apply(changed: ReadonlyMap<string, Listed | null>): void {
    const gone: Listed[] = [];
    const come: Listed[] = [];
    for (const [id, now] of changed) {
      const before = byId.get(id);
      if (before !== undefined) gone.push(before);
      if (now === null) byId.delete(id);
      else {
        byId.set(id, now);
        come.push(now);
      }
    }
    market.apply(gone, come);
  }

  /** One refresh at a time. One that began before the call may have missed what the caller has just done. */
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
  const { state, paused, opted_in, banned_at, ...node } = change;
  const isOffered = state === 'verified' && paused === 0 && opted_in === 1 && banned_at === null;
  if (!isOffered || !hasRoom(node)) return null;
  const subject = subjectOf(node, node.price_uusd_per_gpu_hour, node.slots_free);
  const machineName = names.get(subject.machineName) ?? subject.machineName;
  if (names.size >= MOST_NAMES) names.clear();
  names.set(machineName, machineName);
  return { ...subject, machineName, node };
}
