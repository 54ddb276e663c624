/**
 * The entries of a view: a bounded part of a log. Entries have consecutive numbers, which they keep while others are
 * added or leave, so that a position in the view is a number. Entries that leave at the front are recorded as cuts, from
 * which they can be read again.
 */
import { isLater, isLine, type LogEntry, type LogLine } from './log-lines.ts';

export type LogLimits = {
  /** Entries that a view has while it follows the log. While it does not, it takes a quarter more. */
  entries: number;
  /** Likewise for characters, with an allowance for each entry. */
  chars: number;
};

export const VIEW_LIMITS: LogLimits = { entries: 100_000, chars: 32 * 1024 * 1024 };

/** Entries that have left the view together. */
export type LogCut = {
  /** Id of the line before them; null if they were the first ones. */
  after: string | null;
  /** Time of their first line. */
  at: string;
  last: Pick<LogLine, 'id' | 'at'>;
  entries: number;
};

export type LogBuffer = ReturnType<typeof createLogBuffer>;

/** Memory of an entry besides its texts, in characters. */
const ENTRY_CHARS = 100;
/** Share of the limits that leaves at once, so that entries do not move for each line. */
const CUT_SHARE = 0.1;
const FULL_SHARE = 1.25;
/** Upper bound of cuts; then the oldest can no longer be read again. */
const MAX_CUTS = 1_000;

/** Calls listeners with the lowest number whose entry is new. */
export function createLogBuffer(limits: LogLimits = VIEW_LIMITS) {
  let entries: LogEntry[] = [];
  let base = 0;
  let chars = 0;
  let version = 0;
  let cuts: LogCut[] = [];
  /** Id of the last line that left at the front. */
  let before: string | null = null;
  const listeners = new Set<(from: number) => void>();

  const end = () => base + entries.length;
  const exceeds = (share: number) =>
    entries.length > limits.entries * share || chars > limits.chars * share;

  function changed(from: number): void {
    version += 1;
    for (const listener of listeners) listener(from);
  }

  /** Removes entries at the front and records them. */
  function cut(count: number): void {
    const gone = entries.splice(0, count);
    base += gone.length;
    chars -= sizeOf(gone);
    const first = gone.find(isLine);
    const last = gone.findLast(isLine);
    if (first === undefined || last === undefined) return;
    const { id, at } = last;
    cuts.push({ after: before, at: first.at, last: { id, at }, entries: gone.length });
    if (cuts.length > MAX_CUTS) cuts = cuts.slice(-MAX_CUTS);
    before = id;
  }

  return {
    first: () => base,
    /** Number that the next entry gets. */
    end,
    at: (number: number): LogEntry | undefined => entries[number - base],
    /** Changes with every change. */
    version: () => version,
    subscribe(listener: (from: number) => void): () => void {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    append(added: readonly LogEntry[]): void {
      const from = end();
      for (const entry of added) entries.push(entry);
      chars += sizeOf(added);
      changed(from);
    },
    /** Adds entries of one pod among those of others, by their times. */
    insert(added: readonly LogEntry[]): void {
      const [first] = added;
      if (first === undefined) return;
      let place = entries.length;
      while (place > 0 && isLater(entries[place - 1]?.at ?? '', first.at)) place -= 1;
      entries.push(...mergedByTime(entries.splice(place), added));
      chars += sizeOf(added);
      changed(base + place);
    },
    /** Returns true if a view that does not follow the log has no more room. */
    isFull: () => exceeds(FULL_SHARE),
    /** Removes the oldest entries above the limits of a view that follows the log. */
    trim(): void {
      if (!exceeds(1)) return;
      do cut(Math.max(Math.ceil(limits.entries * CUT_SHARE), 1));
      while (exceeds(1) && entries.length > 0);
      changed(end());
    },
    /** Removes all entries. They can be read again. */
    clear(): void {
      cut(entries.length);
      changed(base);
    },
    /** The entries that left last; null if none have, or if they can no longer be read. */
    lastCut: (): LogCut | null => cuts.at(-1) ?? null,
    /** Number of entries that have left and can be read again. */
    cutEntries: () => cuts.reduce((sum, each) => sum + each.entries, 0),
    /**
     * Puts the entries of the last cut in front again. Above the limits the newest entries leave; returns the id of the
     * last line that stays in that case, after which the stream must continue, else null.
     */
    restore(added: readonly LogEntry[]): string | null {
      before = cuts.pop()?.after ?? null;
      entries = [...added, ...entries];
      base -= added.length;
      chars += sizeOf(added);
      let hasDropped = false;
      while (exceeds(1) && entries.length > added.length) {
        chars -= sizeOf(entries.splice(Math.max(entries.length - added.length, added.length)));
        hasDropped = true;
      }
      changed(base);
      return hasDropped ? (entries.findLast(isLine)?.id ?? null) : null;
    },
    /** Returns the text of all entries, one per line. `lineOf` returns null for entries to leave out. */
    text: (lineOf: (entry: LogEntry) => string | null): string =>
      entries
        .map(lineOf)
        .filter((line) => line !== null)
        .join('\n'),
  };
}

function sizeOf(entries: readonly LogEntry[]): number {
  let chars = 0;
  for (const entry of entries) {
    chars += entry.text.length + ENTRY_CHARS;
    if (entry.kind === 'line') chars += entry.coloured?.length ?? 0;
  }
  return chars;
}

/** Both lists are ordered by time, and stay in their order. */
function mergedByTime(first: readonly LogEntry[], second: readonly LogEntry[]): LogEntry[] {
  const merged: LogEntry[] = [];
  let at = 0;
  for (const entry of second) {
    for (
      let next = first[at];
      next !== undefined && !isLater(next.at, entry.at);
      next = first[at]
    ) {
      merged.push(next);
      at += 1;
    }
    merged.push(entry);
  }
  return [...merged, ...first.slice(at)];
}
