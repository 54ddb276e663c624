/** Finds the position in a log's files at a time, after a frame, or some lines before the end. */
import type { LogFile as OpenFile } from './file-chain.ts';
import { entryNs, FRESH, type LineBlock } from './json-lines.ts';
import { type Cursor, type LogFile, READ_BYTES } from './log-file.ts';
import type { LogPosition, StreamName } from './log-frames.ts';

/** A cursor, and which of the lines after it to skip. */
export type Start = {
  cursor: Cursor;
  /** Number of lines (of the selected stream) to skip. */
  drop: number;
  /** Lines before this time are skipped, until a line `MAX_CROSSING_NS` later. */
  notBeforeNs: string | null;
  /** True if the line to resume after was deleted. */
  gap: boolean;
};

/** Upper bound on how far the timestamps of two streams in one file are out of order. */
const MAX_CROSSING_NS = 1_000_000_000n;
const NS_DIGITS = 19;
/** Distance at which the binary search stops; the remaining bytes are read line by line. */
const SEARCH_BYTES = 128 * 1024;
/** First estimate of the length of an entry, in bytes; a wrong one costs another pass. */
const ENTRY_GUESS_BYTES = 256;
const GUESS_FACTOR = 4;
/** Upper bound on the lines that share a time. */
const LEAD_LINES = 64;
const NEWLINE = 0x0a;
const ENTRY_TIME = /"time":"([^"]+)"\}$/;
const FRAME_NS = /"id":"[0-9a-f]+\.(\d+)\.\d+"/;

/** Starts at the oldest line that is left. */
export function startAtOldest(log: LogFile): Start {
  return plain(cursorAt(log.files().at(0)?.order ?? 0, 0));
}

/** Starts at the first line of that time or later. */
export async function startAtTime(log: LogFile, ms: number): Promise<Start> {
  const ns = BigInt(ms) * 1_000_000n;
  return { ...plain(await cursorBefore(log, ns - MAX_CROSSING_NS)), notBeforeNs: pad(ns) };
}

/**
 * Starts after the frame with that id. If that frame was deleted, starts at the first line after its time and sets
 * `gap`.
 */
export async function startAfterFrame(
  log: LogFile,
  container: string,
  { ns, seq }: LogPosition,
  stream: StreamName | null,
): Promise<Start> {
  const wanted = `"id":"${container}.${ns}.${seq}"`;
  const from = await cursorBefore(log, ns - MAX_CROSSING_NS);
  const stopAfter = pad(ns + MAX_CROSSING_NS);
  const end = await log.end();
  for (let cursor = from; ; ) {
    const { block, next, atEnd } = await log.read(cursor);
    const found = block.text.indexOf(wanted);
    if (found !== -1) {
      const skipped = block.ends.findIndex((lineEnd) => lineEnd > found) + 1;
      return { ...plain(cursor), drop: countOf(block.streams.slice(0, skipped), stream) };
    }
    if (atEnd || isPast(next, end) || lastNs(block) > stopAfter) break;
    cursor = next;
  }
  return { ...plain(from), notBeforeNs: pad(ns + 1n), gap: true };
}

/**
 * Starts `count` lines (of the selected stream) before the end; `missing`: number of lines that the log lacks to have
 * `count`.
 */
export async function startAtTail(
  log: LogFile,
  count: number,
  stream: StreamName | null,
): Promise<Start & { missing: number }> {
  const end = await log.end();
  for (let bytes = SEARCH_BYTES + count * ENTRY_GUESS_BYTES; ; bytes *= GUESS_FACTOR) {
    const { cursor, isOldest } = await cursorBack(log, bytes);
    const lines = await countLines(log, cursor, end, stream);
    // The first counted line may be a fragment, and lines before the wanted ones determine their numbers.
    if (lines > count + LEAD_LINES || isOldest)
      return {
        ...plain(cursor),
        drop: Math.max(0, lines - count),
        missing: Math.max(0, count - lines),
      };
  }
}

/** Returns the selected lines of a block and advances `start` past it. */
export function selectLines(block: LineBlock, start: Start, stream: StreamName | null): string {
  if (start.drop === 0 && start.notBeforeNs === null && stream === null) return block.text;
  let text = '';
  let from = 0;
  for (const [index, end] of block.ends.entries()) {
    const line = block.text.slice(from, end);
    from = end;
    if (isWanted(line, block.streams[index] ?? 'stdout', start, stream)) text += line;
  }
  return text;
}

export function isPast(at: { order: number; offset: number }, end: typeof at): boolean {
  return at.order > end.order || (at.order === end.order && at.offset >= end.offset);
}

function isWanted(line: string, of: StreamName, start: Start, stream: StreamName | null): boolean {
  if (stream !== null && of !== stream) return false;
  if (start.drop > 0) {
    start.drop -= 1;
    return false;
  }
  if (start.notBeforeNs === null) return true;
  const ns = pad(BigInt(FRAME_NS.exec(line)?.[1] ?? 0));
  if (ns > pad(BigInt(start.notBeforeNs) + MAX_CROSSING_NS)) {
    start.notBeforeNs = null;
    return true;
  }
  return ns >= start.notBeforeNs;
}

async function countLines(
  log: LogFile,
  from: Cursor,
  end: { order: number; offset: number },
  stream: StreamName | null,
): Promise<number> {
  let count = 0;
  for (let cursor = from; ; ) {
    const { block, next, atEnd } = await log.read(cursor);
    count += countOf(block.streams, stream);
    if (atEnd || isPast(next, end)) return count;
    cursor = next;
  }
}

function countOf(streams: readonly StreamName[], stream: StreamName | null): number {
  if (stream === null) return streams.length;
  return streams.reduce((count, each) => (each === stream ? count + 1 : count), 0);
}

/** Returns a cursor at the start of an entry about `bytes` before the end. */
async function cursorBack(log: LogFile, bytes: number) {
  let left = bytes;
  for (const file of log.files().toReversed()) {
    const { size } = await file.handle.stat();
    if (size > left) {
      const entry = await entryAfter(log, file, size - left);
      if (entry !== null) return { cursor: cursorAt(file.order, entry.offset), isOldest: false };
    }
    left -= size;
  }
  return { cursor: startAtOldest(log).cursor, isOldest: true };
}

/** Returns a cursor at an entry before which there is no line of `ns` or later. */
async function cursorBefore(log: LogFile, ns: bigint): Promise<Cursor> {
  const limit = pad(ns);
  const isEarly = (time: string | undefined) => time !== undefined && time < limit;
  const files = log.files();
  let chosen = files.at(0);
  for (const file of files) {
    if (isEarly((await entryAfter(log, file, 0))?.ns)) chosen = file;
  }
  if (chosen === undefined) return cursorAt(0, 0);
  let low = 0;
  let high = (await chosen.handle.stat()).size;
  while (high - low > SEARCH_BYTES) {
    const middle = low + Math.floor((high - low) / 2);
    const entry = await entryAfter(log, chosen, middle);
    if (entry !== null && entry.offset < high && isEarly(entry.ns)) low = entry.offset;
    else high = middle;
  }
  return cursorAt(chosen.order, low);
}

/** Returns the first whole entry that begins in the READ_BYTES after `offset`, or null. */
async function entryAfter(log: LogFile, file: OpenFile, offset: number) {
  const bytes = await log.peek(file, offset, READ_BYTES);
  let start = offset === 0 ? 0 : bytes.indexOf(NEWLINE) + 1;
  for (;;) {
    const end = bytes.indexOf(NEWLINE, start);
    if (end === -1 || (start === 0 && offset !== 0)) return null;
    const time = ENTRY_TIME.exec(bytes.toString('utf8', start, end))?.[1];
    const ns = time === undefined ? null : entryNs(time);
    if (ns !== null) return { offset: offset + start, ns };
    start = end + 1;
  }
}

function lastNs(block: LineBlock): string {
  const line = block.text.slice(block.ends.at(-2) ?? 0);
  return pad(BigInt(FRAME_NS.exec(line)?.[1] ?? 0));
}

function cursorAt(order: number, offset: number): Cursor {
  return { order, offset, state: FRESH };
}

function plain(cursor: Cursor): Start {
  return { cursor, drop: 0, notBeforeNs: null, gap: false };
}

function pad(ns: bigint): string {
  return String(ns < 0n ? 0n : ns).padStart(NS_DIGITS, '0');
}
