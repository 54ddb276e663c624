/**
 * One reader of a hub. It first reads the existing log from the node page by page, then the hub's ring, which all
 * readers share. It changes from pages to the ring at a line that is in both, so that it delivers every line exactly
 * once. A reader that falls behind the ring reads pages again, until the ring has its next line, so a stalled reader
 * needs memory for one page only. If the node no longer has a missed line, the reader sends a `gap`.
 */
import type { Clock } from '#shared/runtime/clock.ts';
import { LARGE_PAGE_CHARS, type LogHub } from './log-hub.ts';
import { BEGINNING, type LogPage, type LogPosition, MAX_TAIL } from './log-page.ts';
import type { LogEntry } from './log-ring.ts';

/** Maximum number of characters per frame. */
const BATCH_CHARS = 64 * 1024;
const FIRST_PAUSE_MS = 100;
const LAST_PAUSE_MS = 5_000;
/** Maximum time between the arrival of a line in a page and in the shared stream. */
const JOIN_TIMEOUT_MS = 5_000;

export type FollowOptions = { hub: LogHub; clock: Clock; from: LogPosition; signal: AbortSignal };

/** Yields frames as text. Rejects when `signal` aborts. */
export async function* followHub(options: FollowOptions): AsyncGenerator<string> {
  const { hub, from, signal } = options;
  await hub.ready(signal);
  if (from.since === undefined && from.tail === 0) {
    const now = hub.ring.next();
    yield* live(options, now, hub.ring.lastLineBefore(now));
    return;
  }
  let position = from;
  for (;;) {
    const joined = yield* catchUp(options, position);
    position = yield* live(options, joined.place, joined.lastId, joined.sinceMs);
  }
}

/**
 * Position at which the reader continues in the hub, the last delivered line, and the time before which lines are
 * skipped.
 */
type Joined = { place: number; lastId: string | null; sinceMs?: number };

async function* catchUp(
  { hub, clock, signal }: FollowOptions,
  start: LogPosition,
): AsyncGenerator<string, Joined> {
  let position = start;
  let lastId = isTime(start.since) ? null : (start.since ?? null);
  let pauseMs = FIRST_PAUSE_MS;
  for (;;) {
    // Read before the page is requested: entries that reach the hub later cannot be older than the page.
    const mark = hub.ring.next();
    const page = yield* sendPage({ hub, signal }, position, lastId !== null);
    if (page !== null) {
      if (page.lastId !== null) position = { tail: MAX_TAIL, since: page.lastId };
      lastId = lastIdAfter(page, lastId);
      if (lastId === null) {
        if (page.more) continue;
        return { place: mark, lastId, ...sinceOf(start) };
      }
      const place = page.more
        ? hub.ring.after(lastId)
        : await placeAfter({ hub, clock, signal }, lastId);
      if (place !== null) return { place, lastId };
      if (page.more || page.lastId !== null) continue;
    }
    // Either the node does not answer, or neither the page nor the hub contains the next line yet.
    await clock.sleep(pauseMs, signal);
    pauseMs = Math.min(pauseMs * 2, LAST_PAUSE_MS);
  }
}

/**
 * Reads and yields a page. Returns it without its text, or null if the node does not answer. The first page of a new
 * reader is small, so that it arrives soon; a reader that is behind gets large pages.
 */
async function* sendPage(
  { hub, signal }: Pick<FollowOptions, 'hub' | 'signal'>,
  from: LogPosition,
  isBehind: boolean,
): AsyncGenerator<string, Omit<LogPage, 'text'> | null> {
  const release = isBehind ? hub.reserveLargePage() : null;
  try {
    const size = release === null ? {} : { maxChars: LARGE_PAGE_CHARS };
    const page = await hub.page({ from, signal, ...size }).catch(() => null);
    signal.throwIfAborted();
    if (page === null) return null;
    const { text, ...rest } = page;
    if (text !== '') yield text;
    return rest;
  } finally {
    // After the client has received the page, because only then its memory is free.
    release?.();
  }
}

/**
 * Returns the position after a line in the hub; waits until the line arrives. Null if the hub has dropped it, or if it
 * does not arrive in time.
 */
async function placeAfter(
  { hub, clock, signal }: Omit<FollowOptions, 'from'>,
  id: string,
): Promise<number | null> {
  let deadline: AbortSignal | null = null;
  for (;;) {
    const place = hub.ring.after(id);
    if (place !== null) return place;
    const oldest = hub.ring.oldestLine();
    if (oldest !== null && timeOf(id) < timeOf(oldest)) return null;
    deadline ??= clock.deadline(JOIN_TIMEOUT_MS, signal);
    await hub.arrived(hub.ring.next(), deadline).catch(() => undefined);
    signal.throwIfAborted();
    if (deadline.aborted) return null;
  }
}

/**
 * Returns null after a gap without lines, because the last delivered line then belongs to a log that no longer exists.
 */
function lastIdAfter(page: Omit<LogPage, 'text'>, before: string | null): string | null {
  if (page.lastId !== null) return page.lastId;
  return page.gap ? null : before;
}

/** Yields the hub's entries. When the hub has dropped the next entry, returns the position from which to read pages. */
async function* live(
  { hub, signal }: FollowOptions,
  start: number,
  startId: string | null,
  sinceMs?: number,
): AsyncGenerator<string, LogPosition> {
  let place = start;
  let lastId = startId;
  for (;;) {
    const entries = hub.ring.read(place, BATCH_CHARS);
    if (entries === null) {
      return { tail: MAX_TAIL, since: lastId ?? String(sinceMs ?? BEGINNING) };
    }
    place += entries.length;
    lastId = entries.findLast((entry) => entry.id !== null)?.id ?? lastId;
    const wanted = sinceMs === undefined ? entries : entries.filter(isNotBefore(sinceMs));
    if (wanted.length > 0) yield wanted.map((entry) => entry.text).join('');
    else if (entries.length === 0) await hub.arrived(place, signal);
  }
}

function isTime(since: string | undefined): boolean {
  return since !== undefined && /^\d+$/.test(since);
}

function sinceOf({ since }: LogPosition): { sinceMs?: number } {
  return isTime(since) ? { sinceMs: Number(since) } : {};
}

/** Skips older lines, which reached the hub late. */
function isNotBefore(sinceMs: number): (entry: LogEntry) => boolean {
  return ({ id }) => id === null || timeOf(id) >= BigInt(sinceMs) * 1_000_000n;
}

/** Ids contain the line's time in nanoseconds. */
function timeOf(id: string): bigint {
  const [, ns = ''] = id.split('.');
  return /^\d{1,19}$/.test(ns) ? BigInt(ns) : 0n;
}
