import { type RefObject, useEffect, useLayoutEffect, useReducer, useRef } from 'react';
import type { LogFeed } from './log-feed.ts';
import type { LogRows } from './log-rows.ts';
import type { SearchHit } from './use-search.tsx';

export type Size = { width: number; height: number };

type ScrollOptions = {
  feed: LogFeed;
  rows: LogRows;
  scroller: RefObject<HTMLElement | null>;
  /** Size of a character. */
  cell: Size;
  /** Size of the visible part. */
  view: Size;
  /** The entry to which the view scrolls when it changes. */
  hit: SearchHit | null;
};

/** Entry at the top of the view, and the pixels of it that are above. */
type Anchor = { number: number; offset: number };

/**
 * Position of a view in its log. While the log is followed, the end stays in the view; users end this by scrolling up, and
 * begin it again by scrolling to the end. Otherwise the entry at the top stays, also while entries come and go above it.
 */
export function useLogScroll({ feed, rows, scroller, cell, view, hit }: ScrollOptions) {
  const { isFollowing } = feed.get();
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const top = useRef(0);
  const anchor = useRef<Anchor>({ number: 0, offset: 0 });
  const first = feed.buffer.first();
  const total = rows.total() * cell.height;
  const drawn = useRef({ rows, cell, first, hit });

  useEffect(() => {
    // A part that scrolls must be reachable with the keyboard.
    if (scroller.current !== null) scroller.current.tabIndex = 0;
  }, [scroller]);

  function remember(position: number): void {
    const { number, row } = rows.entryAt(Math.floor(position / cell.height));
    top.current = position;
    anchor.current = { number, offset: position - row * cell.height };
  }

  // After every picture: what it has drawn decides whether the position must change.
  useLayoutEffect(() => {
    const element = scroller.current;
    const before = drawn.current;
    drawn.current = { rows, cell, first, hit };
    if (element === null) return;
    if (isFollowing) {
      element.scrollTop = element.scrollHeight;
      remember(element.scrollTop);
      return;
    }
    const hasMoved = before.rows !== rows || before.cell !== cell || before.first !== first;
    const isFound = hit !== null && before.hit !== hit;
    if (!hasMoved && !isFound) return;
    const { number, offset } = anchor.current;
    const wanted = isFound
      ? rows.rowOf(hit.number) * cell.height - view.height / 2
      : rows.rowOf(Math.max(number, first)) * cell.height + offset;
    element.scrollTop = wanted;
    remember(element.scrollTop);
    redraw();
  });

  function pause(): void {
    const element = scroller.current;
    if (element === null || element.scrollHeight <= element.clientHeight) return;
    remember(element.scrollTop);
    feed.pause();
  }

  return {
    /** Pixels above the visible part. */
    top: isFollowing ? Math.max(total - view.height, 0) : top.current,
    pause,
    onScroll(): void {
      const element = scroller.current;
      if (element === null) return;
      const { scrollTop, scrollHeight, clientHeight } = element;
      const isUpward = scrollTop < top.current - 1;
      const isDownward = scrollTop > top.current + 1;
      if (isFollowing) {
        if (isUpward) pause();
        return;
      }
      remember(scrollTop);
      if (isDownward && scrollTop + clientHeight >= scrollHeight - cell.height) feed.follow();
      else redraw();
    },
  };
}
