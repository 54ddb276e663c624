/** Word of new events, account by account: a hint to look at the feed now, never the only news. */
import type { Clock } from '#shared/runtime/clock.ts';
import { withBell } from '../../platform/database/bell.ts';
import type { Signals } from '../../platform/database/signals.ts';
import type { Database } from '../../platform/database/tables.ts';

/** Begins the words between processes that are ours; the account's id follows. */
const WORD = 'events ';
/** Other processes are told of an account at most this often: they look for longer than that (event-watch.ts). */
const TELL_INTERVAL_MS = 100;

export type EventNews = ReturnType<typeof createEventNews>;

export function createEventNews({ clock, signals }: { clock: Clock; signals: Signals | null }) {
  const listeners = new Map<string, Set<() => void>>();
  const toldOthers = new Set<string>();

  function tellHere(accountId: string): void {
    for (const hear of listeners.get(accountId) ?? []) hear();
  }

  function tellOthers(accountId: string): void {
    if (signals === null || toldOthers.has(accountId)) return;
    toldOthers.add(accountId);
    signals.send(WORD + accountId);
    void clock.sleep(TELL_INTERVAL_MS).then(() => toldOthers.delete(accountId));
  }

  return {
    /** `db` with every event that is inserted through it, or through its transactions, told of. */
    toldBy: (db: Database): Database =>
      withBell(db, 'events', (accountId) => {
        tellHere(accountId);
        tellOthers(accountId);
      }),

    /** A word of another process; null when some may have been missed. */
    hear(word: string | null): void {
      if (word === null) for (const accountId of [...listeners.keys()]) tellHere(accountId);
      else if (word.startsWith(WORD)) tellHere(word.slice(WORD.length));
    },

    /** Gives the way to stop listening. */
    on(accountId: string, hear: () => void): () => void {
      const own = listeners.get(accountId) ?? new Set();
      listeners.set(accountId, own.add(hear));
      return () => {
        own.delete(hear);
        if (own.size === 0) listeners.delete(accountId);
      };
    },
  };
}
