import { useEffect, useState } from 'react';
import { beforeNextFrame } from '../browser/frame.ts';
import type { LogFeed } from './log-feed.ts';
import type { LogEntry } from './log-lines.ts';
import { createLogSearch, type LogSearch, type SearchTerm } from './log-search.ts';

export type UsedSearch = {
  term: SearchTerm | null;
  /** Lines with a hit so far. */
  count: number;
  /** Number of the entry that is shown; null before the first one. */
  hit: number | null;
  /** Position of the shown hit, from 1; 0 without one. */
  ordinal: number;
  /** Shows the next (1) or previous (-1) hit. */
  go: (direction: 1 | -1) => void;
};

/** Searches the entries of a feed in steps, also those that arrive later. `term` and `isShown` must be stable. */
export function useSearch(
  feed: LogFeed,
  term: SearchTerm | null,
  isShown: (entry: LogEntry) => boolean,
): UsedSearch {
  const [search, setSearch] = useState<LogSearch | null>(null);
  const [count, setCount] = useState(0);
  const [hit, setHit] = useState<number | null>(null);
  useEffect(() => {
    setHit(null);
    setCount(0);
    if (term === null) return setSearch(null);
    const created = createLogSearch(feed.buffer, term, isShown);
    setSearch(created);
    let cancel: (() => void) | null = null;
    const step = () => {
      cancel = created.step() ? beforeNextFrame(step) : null;
      setCount(created.count());
    };
    const plan = () => {
      cancel ??= beforeNextFrame(step);
    };
    plan();
    const end = feed.buffer.subscribe(plan);
    return () => {
      end();
      created.end();
      cancel?.();
    };
  }, [feed, term, isShown]);
  return {
    term,
    count,
    hit,
    ordinal: hit === null ? 0 : (search?.ordinal(hit) ?? 0),
    go(direction) {
      if (search === null) return;
      const { buffer } = feed;
      const next = search.next(hit ?? buffer.end(), direction);
      if (next === null) return;
      feed.pause();
      setHit(next);
    },
  };
}
