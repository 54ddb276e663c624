/** The newest entries of one pod's log, numbered in order of arrival. All followers of the pod share them. */

/** A line of the log; an entry without an id is a frame about the stream itself. */
export type LogEntry = { id: string | null; text: string };

export type LogRing = ReturnType<typeof createLogRing>;

/** Maximum characters of all entries together. Dropped entries must be read from the node again. */
export const RING_CHARS = 1024 * 1024;
/** Number of dropped entries that are removed from the array at once. */
const TRIM_LENGTH = 1_024;

/** `maxChars` is for tests. */
export function createLogRing(maxChars = RING_CHARS) {
  let entries: LogEntry[] = [];
  /** The number of `entries[0]`. */
  let base = 0;
  /** The number of the oldest entry. */
  let oldest = 0;
  let chars = 0;
  const numbers = new Map<string, number>();
  /** Id of the last dropped line, or of the last line before the ring started. */
  let before: string | null = null;

  const next = () => base + entries.length;

  function drop(): void {
    const entry = entries[oldest - base];
    if (entry === undefined) return;
    chars -= entry.text.length;
    if (entry.id !== null) {
      before = entry.id;
      if (numbers.get(entry.id) === oldest) numbers.delete(entry.id);
    }
    oldest += 1;
    if (oldest - base < TRIM_LENGTH) return;
    entries = entries.slice(oldest - base);
    base = oldest;
  }

  return {
    /** Returns the number that the next entry will get. */
    next,
    push(entry: LogEntry): void {
      if (entry.id !== null) numbers.set(entry.id, next());
      entries.push(entry);
      chars += entry.text.length;
      while (chars > maxChars && oldest < next() - 1) drop();
    },
    /** Sets the last line before the ring. */
    startAfter(id: string | null): void {
      before = id;
    },
    /** Returns the number of the entry after the line with this id; null if the line is unknown or dropped. */
    after(id: string): number | null {
      const number = numbers.get(id);
      if (number !== undefined) return number + 1;
      return id === before ? oldest : null;
    },
    /** Returns the id of the last line before the entry with this number. */
    lastLineBefore(number: number): string | null {
      for (let at = Math.min(number, next()) - 1; at >= oldest; at -= 1) {
        const id = entries[at - base]?.id;
        if (id !== undefined && id !== null) return id;
      }
      return before;
    },
    /** Returns the id of the oldest line. */
    oldestLine(): string | null {
      for (let at = oldest - base; at < entries.length; at += 1) {
        const id = entries[at]?.id ?? null;
        if (id !== null) return id;
      }
      return null;
    },
    /**
     * Returns entries from this number on, up to about `maxBatch` characters; null if the entry with this number was
     * dropped.
     */
    read(from: number, maxBatch: number): LogEntry[] | null {
      if (from < oldest) return null;
      let length = 0;
      let end = from;
      for (; end < next() && length < maxBatch; end += 1) {
        length += entries[end - base]?.text.length ?? 0;
      }
      return entries.slice(from - base, end - base);
    },
  };
}
