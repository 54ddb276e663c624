/**
 * One reader's way into a hub's stream: what was in the log before, page by page, then the entries that all
 * followers share, joined at a line that is in both, so that none is lost and none comes twice. Whoever falls
 * behind what the hub keeps goes back to pages: a stalled reader costs nothing but a page, and what it missed
 * is still in the node's files, or told by the node's `gap` when it is not.
 */
import type { Clock } from '#shared/runtime/clock.ts';
import type { LogHub } from './log-hub.ts';
import { BEGINNING, type LogPage, type LogPosition, MAX_TAIL } from './log-page.ts';
import type { LogEntry } from './log-ring.ts';

/** Characters handed on at a time. */
const BATCH_CHARS = 64 * 1024;
const FIRST_PAUSE_MS = 100;
const LAST_PAUSE_MS = 5_000;
/** How long a line that a page has shown may take to come by the shared stream. */
const JOIN_TIMEOUT_MS = 5_000;

export type FollowOptions = { hub: LogHub; clock: Clock; from: LogPosition; signal: AbortSignal };

/** Frames as text, until `signal` aborts: then it rejects. */
export async function* followHub(options: FollowOptions): AsyncGenerator<string> {
  const { hub, from, signal } = options;
  await hub.ready(signal);
  if (from.since === undefined && from.tail === 0) {
    const now = hub.ring.next();
    yield* live(options, now, hub.ring.lastLineBefore(now));
    return;
  }
  let ask = from;
  for (;;) {
    const joined = yield* catchUp(options, ask);
    ask = yield* live(options, joined.place, joined.lastId, joined.sinceMs);
  }
}

/** Where to go on in the hub, the last line that was handed on, and a time before which lines are not wanted. */
type Joined = { place: number; lastId: string | null; sinceMs?: number };

async function* catchUp(
  { hub, clock, signal }: FollowOptions,
  start: LogPosition,
): AsyncGenerator<string, Joined> {
  let ask = start;
  let lastId = isTime(start.since) ? null : (start.since ?? null);
  let pauseMs = FIRST_PAUSE_MS;
  for (;;) {
    // Before the page is asked for: what comes into the hub from here on cannot be older than the page.
    const mark = hub.ring.next();
    const page = await hub.page(ask, signal).catch(() => null);
    signal.throwIfAborted();
    if (page !== null) {
      if (page.text !== '') yield page.text;
      if (page.lastId !== null) ask = { tail: MAX_TAIL, since: page.lastId };
      lastId = lastIdAfter(page, lastId);
      if (page.more) continue;
      if (lastId === null) return { place: mark, lastId, ...sinceOf(start) };
      const place = await placeAfter({ hub, clock, signal }, lastId);
      if (place !== null) return { place, lastId };
      if (page.lastId !== null) continue;
    }
    // The node is away, or knows nothing new while the hub knows nothing of what there is.
    await clock.sleep(pauseMs, signal);
    pauseMs = Math.min(pauseMs * 2, LAST_PAUSE_MS);
  }
}

/** Where the line is in the hub; waits for it if it is yet to come there. Null when it will not, or has gone. */
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

/** A gap with nothing behind it: the line that was known is of a log that is gone. */
function lastIdAfter(page: LogPage, before: string | null): string | null {
  if (page.lastId !== null) return page.lastId;
  return page.gap ? null : before;
}

/** Returns where to read pages from when the hub does not keep enough any more. */
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

/** Only lines that the hub had not heard of in time are older. */
function isNotBefore(sinceMs: number): (entry: LogEntry) => boolean {
  return ({ id }) => id === null || timeOf(id) >= BigInt(sinceMs) * 1_000_000n;
}

/** Ids carry the line's time in nanoseconds. */
function timeOf(id: string): bigint {
  const [, ns = ''] = id.split('.');
  return /^\d{1,19}$/.test(ns) ? BigInt(ns) : 0n;
}
