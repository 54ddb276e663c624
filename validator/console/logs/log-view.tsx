import {
  type KeyboardEvent,
  type MouseEvent,
  type RefObject,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
  useSyncExternalStore,
  type WheelEvent,
} from 'react';
import type { LogFeed } from './log-feed.ts';
import type { LogEntry } from './log-lines.ts';
import { LogRow } from './log-row.tsx';
import { createLogRows, type LogRows } from './log-rows.ts';
import { type Size, useLogScroll } from './log-scroll.tsx';
import type { SearchTerm } from './log-search.ts';
import { TIME_CHARS, type TimeMode } from './log-times.ts';
import type { SearchHit } from './use-search.tsx';

type LogViewProps = {
  feed: LogFeed;
  label: string;
  times: TimeMode;
  isWrapped: boolean;
  /** Must be stable between renders. */
  isShown: (entry: LogEntry) => boolean;
  /** Name of each pod, in a view of several pods. */
  podNames: readonly string[] | null;
  term: SearchTerm | null;
  /** The entry that the search has found; the view scrolls to it when it changes. */
  hit: SearchHit | null;
};

/** Rows above and below the visible part, so that a fast scroll shows no empty space. */
const MARGIN_ROWS = 10;
/** Characters of the paddings of a row. */
const PADDING_CHARS = 2;
const POD_CHARS = 12;
const MIN_COLUMNS = 20;
const UPWARD_KEYS = ['ArrowUp', 'PageUp', 'Home'];

/** The rows that are visible now. Upward scrolling ends the following of the log; the end of the view resumes it. */
export function LogView(props: LogViewProps) {
  const { feed, label, times, isWrapped, isShown, podNames, term, hit } = props;
  const { buffer } = feed;
  useSyncExternalStore(buffer.subscribe, buffer.version);
  useSyncExternalStore(feed.subscribe, feed.get);
  const scroller = useRef<HTMLDivElement>(null);
  const sample = useRef<HTMLSpanElement>(null);
  const view = useSize(scroller);
  const cell = useCell(sample);
  const columns = isWrapped ? columnsOf(view.width / cell.width, times, podNames !== null) : null;
  const rows = useMemo(
    () => createLogRows(buffer, { columns, isShown }),
    [buffer, columns, isShown],
  );
  const { top, onScroll, pause } = useLogScroll({ feed, rows, scroller, cell, view, hit });
  const total = rows.total();
  const shown = visibleIn(rows, feed, top / cell.height, view.height / cell.height);
  return (
    <section
      ref={scroller}
      className={isWrapped ? 'log-view wrapped' : 'log-view'}
      aria-label={label}
      onScroll={onScroll}
      onWheel={({ deltaY }: WheelEvent) => (deltaY < 0 ? pause() : undefined)}
      // Selected text must not move.
      onMouseMove={({ buttons }: MouseEvent) => (buttons === 1 ? pause() : undefined)}
      onKeyDown={({ key }: KeyboardEvent) => (UPWARD_KEYS.includes(key) ? pause() : undefined)}
    >
      <span ref={sample} className="log-sample" aria-hidden="true">
        0
      </span>
      <div className="log-space" style={{ height: total * cell.height }}>
        <div className="log-rows" style={{ transform: `translateY(${shown.row * cell.height}px)` }}>
          {shown.entries.map(({ number, entry }) => (
            <LogRow
              key={number}
              entry={entry}
              times={times}
              pod={podNames === null ? null : (podNames[entry.source] ?? '')}
              term={term}
              isCurrentHit={number === hit?.number}
            />
          ))}
        </div>
      </div>
    </section>
  );
}

/** Columns of the text in a wrapped line. */
function columnsOf(all: number, times: TimeMode, hasPods: boolean): number {
  const used =
    PADDING_CHARS + (times === 'off' ? 0 : TIME_CHARS + 1) + (hasPods ? POD_CHARS + 1 : 0);
  return Math.max(Math.floor(all) - used, MIN_COLUMNS);
}

type Shown = { row: number; entries: { number: number; entry: LogEntry }[] };

/** Returns the entries of the visible rows, with the row at which the first one begins. */
function visibleIn(rows: LogRows, { buffer }: LogFeed, topRow: number, height: number): Shown {
  const start = rows.entryAt(Math.max(Math.floor(topRow) - MARGIN_ROWS, 0));
  const endRow = topRow + height + MARGIN_ROWS;
  const entries: Shown['entries'] = [];
  let row = start.row;
  for (let number = start.number; row < endRow; number += 1) {
    const entry = buffer.at(number);
    if (entry === undefined) break;
    const own = rows.rowsAt(number);
    if (own > 0) entries.push({ number, entry });
    row += own;
  }
  return { row: start.row, entries };
}

function useSize(place: RefObject<HTMLElement | null>): Size {
  const [size, setSize] = useState<Size>({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const element = place.current;
    if (element === null) return;
    const measure = () => setSize({ width: element.clientWidth, height: element.clientHeight });
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [place]);
  return size;
}

/** Size of a character of the view. */
function useCell(sample: RefObject<HTMLElement | null>): Size {
  const [cell, setCell] = useState<Size>({ width: 8, height: 20 });
  useLayoutEffect(() => {
    const element = sample.current;
    if (element === null) return;
    const { width, height } = element.getBoundingClientRect();
    if (width > 0 && height > 0) setCell({ width, height });
  }, [sample]);
  return cell;
}
