import { useEffect, useState } from 'react';
import { beforeNextFrame } from '../browser/frame.ts';
import type { LogFeed } from './log-feed.ts';
import type { LogEntry } from './log-lines.ts';
import { createLogSearch, type LogSearch, type SearchTerm } from './log-search.ts';

/** A new object for each jump, so that the view scrolls again to an entry that it has left. */
export type SearchHit = {
  /** Number of the entry. */
  number: number;
  /** False for the only hit of a new term, which the view shows by itself. */
  isChosen: boolean;
};

export type UsedSearch = {
  term: SearchTerm | null;
  /** Lines with a hit so far. */
  count: number;
  /** The entry to which the view scrolls; null before the first one. */
  hit: SearchHit | null;
  /** Position of the chosen hit, from 1; 0 without one. */
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
  const [hit, setHit] = useState<SearchHit | null>(null);
  useEffect(() => {
    setHit(null);
    setCount(0);
    if (term === null) return setSearch(null);
    const created = createLogSearch(feed.buffer, term, isShown);
    setSearch(created);
    let cancel: (() => void) | null = null;
    let isFirstPass = true;
    const step = () => {
      cancel = created.step() ? beforeNextFrame(step) : null;
      setCount(created.count());
      if (cancel !== null || !isFirstPass) return;
      isFirstPass = false;
      const only = created.count() === 1 ? created.next(feed.buffer.end(), 1) : null;
      if (only === null) return;
      feed.pause();
      setHit({ number: only, isChosen: false });
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
    ordinal: hit?.isChosen === true ? (search?.ordinal(hit.number) ?? 0) : 0,
    go(direction) {
      if (search === null) return;
      const { buffer } = feed;
      const next = search.next(hit?.number ?? buffer.end(), direction);
      if (next === null) return;
      feed.pause();
      setHit({ number: next, isChosen: true });
    },
  };
}
