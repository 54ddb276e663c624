/** One container's json-file for all its readers: each has a cursor of its own, what is read is shared. */
import { watch } from 'node:fs';
import { dirname } from 'node:path';
import type { Clock } from '#shared/runtime/clock.ts';
import { type LogFile as OpenFile, openFileChain } from './file-chain.ts';
import { FRESH, flushOpen, type LineBlock, type ParseState, parseEntries } from './json-lines.ts';
import { shortId } from './log-frames.ts';

/** Where a reader is: the next byte of one of the files, and what of earlier entries matters. */
export type Cursor = { order: number; offset: number; state: ParseState };

export type Batch = {
  block: LineBlock;
  next: Cursor;
  /** There was no more when it was read. */
  atEnd: boolean;
  /** Lines before it are lost; about how many, or null when nobody can tell. */
  gap: { dropped: number | null } | null;
};

export type LogFile = Awaited<ReturnType<typeof openLogFile>>;

/** One step of a reader; longer than any entry. Its work stays under 8 ms, its frames under 256 KiB. */
export const READ_BYTES = 128 * 1024;
/** Batches kept for readers who come a little later; those further behind read for themselves. */
const RING_CHARS = 512 * 1024;
/** What an end position costs beside the text. */
const CHARS_PER_LINE = 16;
/** How soon a change is noticed that inotify does not tell. */
export const POLL_MS = 500;
const NEWLINE = 0x0a;
const NS_PER_S = 1e9;

const EMPTY: LineBlock = { text: '', ends: [], streams: [] };

/** Rejects when the file cannot be read, as with an engine on another host. */
export async function openLogFile(path: string, containerId: string, clock: Clock) {
  const container = shortId(containerId);
  const chain = await openFileChain(path, clock);
  const buffer = Buffer.allocUnsafe(READ_BYTES + 1);
  const ring = new Map<string, Promise<Batch>>();
  const ringSizes = new Map<string, number>();
  let ringChars = 0;
  let turn: Promise<unknown> = Promise.resolve();
  let changed = Promise.withResolvers<void>();
  const closing = new AbortController();
  let poll: Promise<void> | null = null;
  const stopWatching = watchFolder(path, (event) => {
    wake();
    // Rotated: the new file is taken hold of before the next rotation can remove it.
    if (event === 'rename') void chain.refresh().catch(() => undefined);
  });

  function wake(): void {
    changed.resolve();
    changed = Promise.withResolvers();
  }

  /** One at a time: all share the buffer. */
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = turn.then(work);
    turn = result.catch(() => undefined);
    return result;
  }

  function startOf(file: OpenFile, state: ParseState): Cursor {
    return { order: file.order, offset: 0, state };
  }

  /** The file of a cursor, the oldest that is left if that is gone. */
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

  /** From the pace at which the first lines after the gap were written. */
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

  async function readOnce({ order, offset, state }: Cursor): Promise<Batch> {
    // Told before reading: a file that has a successor then gets no more entries.
    const { file, isLast, isGone } = fileAt(order);
    if (isGone) return gapBefore(file, state);
    // With the byte before, which ends an entry unless the file was truncated.
    const lead = offset === 0 ? 0 : 1;
    const { bytesRead } = await file.handle.read(buffer, 0, READ_BYTES + lead, offset - lead);
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
    if (!isLast) return nextFile(file, state);
    await chain.refresh();
    const atEnd = chain.files().at(-1) === file;
    return { block: EMPTY, next: { order, offset, state }, atEnd, gap: null };
  }

  /** What is left of `file` has no newline: an entry that was never finished. */
  async function nextFile({ order }: OpenFile, state: ParseState): Promise<Batch> {
    const { file } = fileAt(order + 1);
    if (file.afterGap) return gapBefore(file, state);
    return { block: EMPTY, next: startOf(file, state), atEnd: false, gap: null };
  }

  function keep(key: string, { block }: Batch): void {
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

  return {
    /** What follows the cursor, at most READ_BYTES of the file. The same cursor is read once for all who ask. */
    read(cursor: Cursor): Promise<Batch> {
      const key = keyOf(cursor);
      const known = ring.get(key);
      if (known !== undefined) return known;
      const batch = inTurn(() => readOnce(cursor));
      ring.set(key, batch);
      batch.then(
        (result) => (result.block.text === '' ? ring.delete(key) : keep(key, result)),
        () => ring.delete(key),
      );
      return batch;
    },

    /** Bytes as they are, for searching; offset 0 is the start of `file`. */
    peek: (file: OpenFile, offset: number, length: number): Promise<Buffer> =>
      inTurn(async () => {
        // Rotated away meanwhile: as good as empty.
        if (!chain.files().includes(file)) return Buffer.alloc(0);
        const { bytesRead } = await file.handle.read(buffer, 0, length, offset);
        return Buffer.from(buffer.subarray(0, bytesRead));
      }),
    files: chain.files,
    /** Where the log ends now. */
    async end(): Promise<{ order: number; offset: number }> {
      await chain.refresh();
      const { file } = fileAt(chain.files().at(-1)?.order ?? 0);
      return { order: file.order, offset: (await file.handle.stat()).size };
    },
    /** The lines that were begun, when nothing will continue them. */
    flush: (cursor: Cursor): { block: LineBlock; next: Cursor } => {
      const { block, after } = flushOpen(container, cursor.state);
      return { block, next: { ...cursor, state: after } };
    },
    /** Resolves when the log may have grown, and when there has been no sign of it for a while. */
    changed(): Promise<void> {
      poll ??= clock.sleep(POLL_MS, closing.signal).then(() => {
        poll = null;
        wake();
      });
      poll.catch(() => undefined);
      return changed.promise;
    },
    /** Lets all who wait for a change look again. */
    wake,
    async close(): Promise<void> {
      stopWatching();
      closing.abort();
      await turn;
      await chain.close();
    },
  };
}

function keyOf({ order, offset, state: { open } }: Cursor): string {
  return `${order}:${offset}:${open.stdout?.bytes.length ?? 0}:${open.stderr?.bytes.length ?? 0}`;
}

/** Without inotify (its instances are limited) readers look by the clock alone. */
function watchFolder(path: string, onEvent: (event: string) => void): () => void {
  try {
    const watcher = watch(dirname(path), { persistent: false }, onEvent);
    watcher.on('error', () => watcher.close());
    return () => watcher.close();
  } catch {
    return () => undefined;
  }
}
