/** Search in the entries of a view. It continues where it was when entries are added. Pure. */
import type { LogBuffer } from './log-buffer.ts';
import type { LogEntry } from './log-lines.ts';

export type SearchTerm = { text: string; matchCase: boolean };

/** Parts of a text; `isHit` is true for those that match. */
export type SearchPart = { text: string; isHit: boolean };

export type LogSearch = ReturnType<typeof createLogSearch>;

/** Entries that a step searches, so that a step takes less than a frame. */
const STEP = 5_000;

/** `isShown` returns false for entries that the view does not show. The caller must call `end()`. */
export function createLogSearch(
  buffer: LogBuffer,
  term: SearchTerm,
  isShown: (entry: LogEntry) => boolean,
) {
  /** Numbers of the entries with a hit. */
  let hits: number[] = [];
  let searched = buffer.first();
  const end = buffer.subscribe((from) => {
    searched = Math.min(searched, from);
    hits = hits.slice(0, placeOf(hits, from));
  });
  const contains = matcherOf(term);

  return {
    end,
    /** Searches some entries; returns true if further steps are necessary. */
    step(): boolean {
      searched = Math.max(searched, buffer.first());
      hits = hits.slice(placeOf(hits, buffer.first()));
      const to = Math.min(searched + STEP, buffer.end());
      for (; searched < to; searched += 1) {
        const entry = buffer.at(searched);
        if (entry !== undefined && isShown(entry) && contains(entry.text)) hits.push(searched);
      }
      return searched < buffer.end();
    },
    count: () => hits.length,
    /** Returns the position of an entry among the hits, from 1; 0 if it has none. */
    ordinal(number: number): number {
      const place = placeOf(hits, number);
      return hits[place] === number ? place + 1 : 0;
    },
    /** Returns the nearest hit after (1) or before (-1) an entry, else that at the other end; null without hits. */
    next(number: number, direction: 1 | -1): number | null {
      const place =
        placeOf(hits, direction === 1 ? number + 1 : number) - (direction === 1 ? 0 : 1);
      return hits[place] ?? hits.at(direction === 1 ? 0 : -1) ?? null;
    },
  };
}

/** Index of the first hit that is not below `number`. */
function placeOf(hits: readonly number[], number: number): number {
  let low = 0;
  let high = hits.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((hits[middle] ?? 0) < number) low = middle + 1;
    else high = middle;
  }
  return low;
}

function matcherOf({ text, matchCase }: SearchTerm): (line: string) => boolean {
  if (matchCase) return (line) => line.includes(text);
  const lower = text.toLowerCase();
  return (line) => line.toLowerCase().includes(lower);
}

/** Splits a text at the hits of a term; null finds nothing. */
export function searchParts(text: string, term: SearchTerm | null): SearchPart[] {
  if (term === null || term.text === '') return [{ text, isHit: false }];
  const within = term.matchCase ? text : text.toLowerCase();
  // Some letters change their length in lower case; then the hits cannot be located.
  const found = term.matchCase ? term.text : term.text.toLowerCase();
  if (within.length !== text.length) return [{ text, isHit: within.includes(found) }];
  const parts: SearchPart[] = [];
  let from = 0;
  for (let at = within.indexOf(found); at !== -1; at = within.indexOf(found, from)) {
    if (at > from) parts.push({ text: text.slice(from, at), isHit: false });
    from = at + found.length;
    parts.push({ text: text.slice(at, from), isHit: true });
  }
  if (from < text.length) parts.push({ text: text.slice(from), isHit: false });
  return parts;
}
