/** A container's json-file log, shared by all its readers: each has its own cursor, the batches are shared. */
import { type FSWatcher, watch } from 'node:fs';
import { dirname } from 'node:path';
import type { Clock } from '#shared/runtime/clock.ts';
import type { ContainerState } from '../containers/engine/engine.ts';
import { type LogFile as OpenFile, openFileChain } from './file-chain.ts';
import { FRESH, flushOpen, type LineBlock, type ParseState, parseEntries } from './json-lines.ts';
import { shortId } from './log-frames.ts';

/** Position of a reader: the next byte in one of the files, and the parser's state there. */
export type Cursor = { order: number; offset: number; state: ParseState };

export type Batch = {
  block: LineBlock;
  next: Cursor;
  /** The log had no more entries at the time of the read. */
  atEnd: boolean;
  /** Lines before this batch are lost; `dropped` is an estimate, null when unknown. */
  gap: { dropped: number | null } | null;
};

export type LogFile = Awaited<ReturnType<typeof openLogFile>>;

/** Size of one read; longer than any entry. Parsing takes under 8 ms and yields under 256 KiB of frames. */
export const READ_BYTES = 128 * 1024;
/** Size of a follower's read: other requests wait at most a millisecond for its parsing, also during a flood. */
const FOLLOW_READ_BYTES = 16 * 1024;
/** Size of the cache of recent batches. Readers further behind read the file again. */
const RING_CHARS = 512 * 1024;
/** Estimated memory of a line's end position, in characters. */
const CHARS_PER_LINE = 16;
/** Poll interval for changes that inotify does not report. */
export const POLL_MS = 500;
/**
 * Pause after each reported change, ms: the engine writes a file once per line, and each report interrupts
 * the event loop.
 */
const WATCH_PAUSE_MS = 10;
/**
 * Limits of all followers of a container together, after a burst of FOLLOW_BURST_MS: bytes per second that
 * they read, and the time from one read to the next as a multiple of the duration of the first. Without
 * limits, a pod that floods its log would occupy the event loop, which serves all pods.
 */
const FOLLOW_BYTES_PER_S = 2 * 1024 * 1024;
const FOLLOW_CYCLE = 4;
const FOLLOW_BURST_MS = 4_000;
const MS_PER_S = 1_000;
const NEWLINE = 0x0a;
const NS_PER_S = 1e9;

const EMPTY: LineBlock = { text: '', ends: [], streams: [] };

/** Rejects if the file cannot be read, as with an engine on another host. */
export async function openLogFile(path: string, containerId: string, clock: Clock) {
  const container = shortId(containerId);
  const chain = await openFileChain(path, clock);
  const buffer = Buffer.allocUnsafe(READ_BYTES + 1);
  const ring = new Map<string, Promise<Batch>>();
  const ringSizes = new Map<string, number>();
  let ringChars = 0;
  let lastRead: Promise<unknown> = Promise.resolve();
  let changed = Promise.withResolvers<void>();
  const closing = new AbortController();
  let poll: Promise<void> | null = null;
  const pace = createPace(clock);
  const stopWatching = watchFolder(path, clock, () => {
    wake();
    // After a rotation, opens the new file before the next rotation can remove it.
    void chain.refresh().catch(() => undefined);
  });

  function wake(): void {
    changed.resolve();
    changed = Promise.withResolvers();
  }

  /** Serializes reads, which share the buffer. */
  function serialized<T>(work: () => Promise<T>): Promise<T> {
    const result = lastRead.then(work);
    lastRead = result.catch(() => undefined);
    return result;
  }

  function startOf(file: OpenFile, state: ParseState): Cursor {
    return { order: file.order, offset: 0, state };
  }

  /** Returns the file of a cursor, or the oldest remaining file if the cursor's file was deleted. */
  function fileAt(order: number): { file: OpenFile; isLast: boolean; isGone: boolean } {
    const files = chain.files();
    const found = files.findIndex((each) => each.order >= order);
    const file = files[found];
    if (file === undefined) throw new Error('the log is closed');
    return { file, isLast: found === files.length - 1, isGone: file.order !== order };
  }

  async function gapBefore(file: OpenFile, lost: ParseState): Promise<Batch> {
    const next = startOf(file, FRESH);
    const dropped = await estimateLost(file, lost);
    return { block: EMPTY, next, atEnd: false, gap: { dropped } };
  }

  /** Estimates the number of lost lines from the rate at which the first lines after the gap were written. */
  async function estimateLost(file: OpenFile, lost: ParseState): Promise<number | null> {
    const lastNs = lost.recent.at(-1)?.ns;
    const { bytesRead } = await file.handle.read(buffer, 0, READ_BYTES, 0);
    const whole = buffer.lastIndexOf(NEWLINE, Math.max(0, bytesRead - 1)) + 1;
    const { block, after } = parseEntries(buffer.toString('utf8', 0, whole), container, FRESH);
    const firstNs = /"id":"[0-9a-f]+\.(\d+)\./.exec(block.text)?.[1];
    const untilNs = after.recent.at(-1)?.ns;
    if (lastNs === undefined || firstNs === undefined || untilNs === undefined) return null;
    const spanS = Math.max(Number(BigInt(untilNs) - BigInt(firstNs)) / NS_PER_S, 1e-6);
    const lostS = Number(BigInt(firstNs) - BigInt(lastNs)) / NS_PER_S;
    return Math.max(1, Math.round((lostS * block.ends.length) / spanS));
  }

  async function readOnce(cursor: Cursor, atMost: number): Promise<Batch> {
    const { order, offset, state } = cursor;
    // Checked before the read: a file that has a successor receives no more entries.
    const { file, isLast, isGone } = fileAt(order);
    if (isGone) return gapBefore(file, state);
    // Includes the byte before, which is a newline unless the file was truncated.
    const lead = offset === 0 ? 0 : 1;
    const { bytesRead } = await file.handle.read(buffer, 0, atMost + lead, offset - lead);
    const isTruncated = lead === 1 && (bytesRead === 0 || buffer[0] !== NEWLINE);
    if (isTruncated) {
      ring.clear();
      ringSizes.clear();
      ringChars = 0;
      return { block: EMPTY, next: startOf(file, FRESH), atEnd: false, gap: { dropped: null } };
    }
    const whole = bytesRead === 0 ? 0 : buffer.lastIndexOf(NEWLINE, bytesRead - 1) + 1;
    if (whole > lead) {
      const text = buffer.toString('utf8', lead, whole);
      const { block, after } = parseEntries(text, container, state);
      const next = { order, offset: offset - lead + whole, state: after };
      return { block, next, atEnd: false, gap: null };
    }
    // The entry is longer than this read.
    if (bytesRead === atMost + lead && atMost < READ_BYTES) return readOnce(cursor, READ_BYTES);
    if (!isLast) return nextFile(file, state);
    await chain.refresh();
    const atEnd = chain.files().at(-1) === file;
    return { block: EMPTY, next: { order, offset, state }, atEnd, gap: null };
  }

  /** Skips the rest of the file, an unfinished entry without newline. */
  async function nextFile({ order }: OpenFile, state: ParseState): Promise<Batch> {
    const { file } = fileAt(order + 1);
    if (file.afterGap) return gapBefore(file, state);
    return { block: EMPTY, next: startOf(file, state), atEnd: false, gap: null };
  }

  function cache(key: string, { block }: Batch): void {
    const size = block.text.length + block.ends.length * CHARS_PER_LINE;
    ringSizes.set(key, size);
    ringChars += size;
    for (const [oldest, oldSize] of ringSizes) {
      if (ringChars <= RING_CHARS) break;
      ring.delete(oldest);
      ringSizes.delete(oldest);
      ringChars -= oldSize;
    }
  }

  function read(cursor: Cursor, atMost = READ_BYTES): Promise<Batch> {
    const key = keyOf(cursor);
    const known = ring.get(key);
    if (known !== undefined) return known;
    const batch = serialized(() => readOnce(cursor, atMost));
    ring.set(key, batch);
    batch.then(
      (result) => (result.block.text === '' ? ring.delete(key) : cache(key, result)),
      () => ring.delete(key),
    );
    return batch;
  }

  return {
    /** Reads at most READ_BYTES after the cursor. Concurrent reads of one cursor share the result. */
    read: (cursor: Cursor) => read(cursor),
    /** Reads like `read`, at FOLLOW_BYTES_PER_S unless the result is cached. Rejects when `signal` aborts. */
    async follow(cursor: Cursor, signal: AbortSignal): Promise<Batch> {
      if (ring.has(keyOf(cursor))) return read(cursor, FOLLOW_READ_BYTES);
      await pace.wait(signal);
      // Another follower may have read it in the meantime.
      const isCached = ring.has(keyOf(cursor));
      const beganMs = clock.monotonicMs();
      const batch = await read(cursor, FOLLOW_READ_BYTES);
      const { order, offset } = batch.next;
      const bytes = order === cursor.order ? offset - cursor.offset : 0;
      if (!isCached) pace.count(bytes, clock.monotonicMs() - beganMs);
      return batch;
    },

    /** Reads raw bytes for searching; offset 0 is the start of `file`. */
    peek: (file: OpenFile, offset: number, length: number): Promise<Buffer> =>
      serialized(async () => {
        // Rotated away in the meantime: treated as empty.
        if (!chain.files().includes(file)) return Buffer.alloc(0);
        const { bytesRead } = await file.handle.read(buffer, 0, length, offset);
        return Buffer.from(buffer.subarray(0, bytesRead));
      }),
    files: chain.files,
    /** Returns the current end of the log. */
    async end(): Promise<{ order: number; offset: number }> {
      await chain.refresh();
      const { file } = fileAt(chain.files().at(-1)?.order ?? 0);
      return { order: file.order, offset: (await file.handle.stat()).size };
    },
    /** Returns unfinished lines, for a run that has ended. */
    flush: (cursor: Cursor): { block: LineBlock; next: Cursor } => {
      const { block, after } = flushOpen(container, cursor.state);
      return { block, next: { ...cursor, state: after } };
    },
    /** Resolves when the log may have grown, at the latest after POLL_MS. */
    changed(): Promise<void> {
      poll ??= clock.sleep(POLL_MS, closing.signal).then(() => {
        poll = null;
        wake();
      });
      poll.catch(() => undefined);
      return changed.promise;
    },
    /** Resolves all pending `changed` promises. */
    wake,
    async close(): Promise<void> {
      stopWatching();
      closing.abort();
      await lastRead;
      await chain.close();
    },
  };
}

function keyOf({ order, offset, state: { open } }: Cursor): string {
  return `${order}:${offset}:${open.stdout?.bytes.length ?? 0}:${open.stderr?.bytes.length ?? 0}`;
}

/** Limits the reads of followers. */
function createPace(clock: Clock) {
  let nextMs = Number.NEGATIVE_INFINITY;
  return {
    /** Waits until the limits permit another read. */
    async wait(signal: AbortSignal): Promise<void> {
      const nowMs = clock.monotonicMs();
      nextMs = Math.max(nextMs, nowMs - FOLLOW_BURST_MS);
      if (nextMs > nowMs) await clock.sleep(nextMs - nowMs, signal);
    },
    count(bytes: number, tookMs: number): void {
      nextMs += Math.max((bytes * MS_PER_S) / FOLLOW_BYTES_PER_S, tookMs * FOLLOW_CYCLE);
    },
  };
}

/**
 * Reports changes in the folder, each after at most WATCH_PAUSE_MS, until the returned function is called. Without
 * inotify (its instances are limited) readers only poll.
 */
function watchFolder(path: string, clock: Clock, onChange: () => void): () => void {
  const closing = new AbortController();
  let watcher: FSWatcher | null = null;

  function open(): void {
    try {
      watcher = watch(dirname(path), { persistent: false });
    } catch {
      return;
    }
    watcher.on('error', () => watcher?.close());
    watcher.once('change', () => void pause().catch(() => undefined));
  }

  async function pause(): Promise<void> {
    watcher?.close();
    onChange();
    await clock.sleep(WATCH_PAUSE_MS, closing.signal);
    open();
    // The folder may have changed while it was not watched.
    onChange();
  }

  open();
  return () => {
    closing.abort();
    watcher?.close();
  };
}

export type LogFilePool = ReturnType<typeof createLogFilePool>;

/** Shares open log files: opened for the first reader of a container, closed after the last. */
export function createLogFilePool(clock: Clock) {
  const pool = new Map<string, { opening: Promise<LogFile>; readers: number }>();

  async function release(path: string, opening: Promise<LogFile>): Promise<void> {
    const entry = pool.get(path);
    if (entry?.opening !== opening) return;
    entry.readers -= 1;
    if (entry.readers > 0) return;
    pool.delete(path);
    await opening.then((log) => log.close()).catch(() => undefined);
  }

  return {
    /** Returns null if the file is not accessible. The caller must call `release` once. */
    async acquire({ id, logPath }: ContainerState) {
      if (logPath === '') return null;
      const entry = pool.get(logPath) ?? { opening: openLogFile(logPath, id, clock), readers: 0 };
      pool.set(logPath, entry);
      entry.readers += 1;
      const releaseOnce = () => release(logPath, entry.opening);
      try {
        return { log: await entry.opening, release: releaseOnce };
      } catch {
        await releaseOnce();
        return null;
      }
    },
  };
}
