/** Turns the engine's output into line frames (contract 7). Pure. */
import { parseIsoTime } from '#shared/runtime/clock.ts';
import type { LogChunk } from '../containers/engine/engine.ts';

export type LineFrame = { log: string; id: string; ts: string; stream: 'stdout' | 'stderr' };

/** A line's place: the engine's time in nanoseconds, and its number among lines of that very time. */
export type LogPosition = { ns: bigint; seq: number };
export type FramedLine = { frame: LineFrame; at: LogPosition };

/** Longer lines are split. */
export const MAX_LINE_BYTES = 64 * 1024;
/** The engine stores longer lines in entries of exactly this size, each with a time of its own. */
const ENTRY_BYTES = 16 * 1024;
/** Times whose lines are counted; lines of one time are never further apart than this. */
const MAX_TIMES = 64;
const NEWLINE = 0x0a;
/** `2026-11-20T23:50:00.123456789+00:00 ` */
const MAX_TIME_CHARS = 36;
const TIME = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?(Z|[+-]\d{2}:\d{2}) /;

/** Ids begin with this many characters of the container's id. */
const ID_CHARS = 12;

/** The id of a frame as its parts, or null if it is none. */
export function parseFrameId(id: string): { container: string; at: LogPosition } | null {
  const match = /^([0-9a-f]{12})\.(\d{1,19})\.(\d{1,9})$/.exec(id);
  if (match?.[1] === undefined) return null;
  const at = { ns: BigInt(match[2] ?? 0), seq: Number(match[3]) };
  return { container: match[1], at };
}

/** How frame ids name a container. */
export function shortId(containerId: string): string {
  return containerId.slice(0, ID_CHARS);
}

/** Frames of one container's output. Holds at most one line per stream. */
export function createLineFramer(containerId: string) {
  const seqOf = createNumbering();

  function frame(stream: LineFrame['stream'], time: EntryTime, bytes: Uint8Array): FramedLine {
    const at = { ns: time.ns, seq: seqOf(time.ns) };
    const id = `${shortId(containerId)}.${at.ns}.${at.seq}`;
    return {
      frame: { log: utf8.decode(bytes), id, ts: withoutTrailingZeros(time.text), stream },
      at,
    };
  }

  const lines = {
    stdout: createLineReader((time, bytes) => frame('stdout', time, bytes)),
    stderr: createLineReader((time, bytes) => frame('stderr', time, bytes)),
  };
  return {
    push: ({ stream, data }: LogChunk): FramedLine[] => lines[stream].push(data),
    /** Lines that were begun and will not be continued. */
    flush: (): FramedLine[] => [...lines.stdout.flush(), ...lines.stderr.flush()],
  };
}

/** Lines of one time need not follow each other: the other stream's may come between. */
function createNumbering() {
  const next = new Map<bigint, number>();
  return (ns: bigint): number => {
    const seq = next.get(ns) ?? 0;
    const [oldest] = next.keys();
    if (seq === 0 && oldest !== undefined && next.size >= MAX_TIMES) next.delete(oldest);
    next.set(ns, seq + 1);
    return seq;
  };
}

/** Keeps a byte order mark, which is part of the output; invalid bytes become U+FFFD. */
const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

type EntryTime = { ns: bigint; text: string };

/** One stream: bytes in, whole lines out. */
function createLineReader(emit: (time: EntryTime, bytes: Uint8Array) => FramedLine) {
  let unread: Buffer = Buffer.alloc(0);
  let line: Buffer = Buffer.alloc(0);
  let time: EntryTime = { ns: 0n, text: '' };
  let entryBytes = 0;
  let atEntryStart = true;

  function endLine(out: FramedLine[]): void {
    if (line.length > 0) out.push(emit(time, line));
    line = Buffer.alloc(0);
    entryBytes = 0;
    atEntryStart = true;
  }

  /** False when more bytes are needed to tell. */
  function readTime(isLast: boolean): boolean {
    const head = unread.toString('latin1', 0, MAX_TIME_CHARS);
    const match = TIME.exec(head);
    if (match === null && head.length < MAX_TIME_CHARS && !isLast && !head.includes('\n')) {
      return false;
    }
    if (match !== null) {
      unread = unread.subarray(match[0].length);
      // A line has the time of its first entry.
      if (line.length === 0) time = timeFrom(match, time);
    }
    atEntryStart = false;
    entryBytes = 0;
    return true;
  }

  function readContent(out: FramedLine[]): void {
    const newline = unread.indexOf(NEWLINE);
    const end = newline === -1 ? unread.length : newline + 1;
    const room = Math.min(ENTRY_BYTES - entryBytes, MAX_LINE_BYTES - line.length);
    const taken = Math.min(end, Math.max(room, 0));
    const piece = unread.subarray(0, taken);
    line = line.length === 0 ? piece : Buffer.concat([line, piece]);
    unread = unread.subarray(taken);
    entryBytes += taken;
    if (line[line.length - 1] === NEWLINE) {
      endLine(out);
    } else if (line.length >= MAX_LINE_BYTES) {
      const whole = wholeCharacters(line);
      out.push(emit(time, line.subarray(0, whole)));
      line = line.subarray(whole);
    }
    if (entryBytes === ENTRY_BYTES) atEntryStart = true;
  }

  function read(out: FramedLine[], isLast: boolean): void {
    while (unread.length > 0) {
      if (atEntryStart && !readTime(isLast)) return;
      if (unread.length > 0) readContent(out);
    }
  }

  return {
    push(data: Uint8Array): FramedLine[] {
      const out: FramedLine[] = [];
      // A container may end in mid-line: then the next run's first entry begins with a time, not here.
      const fresh = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
      const midLine = line.length > 0 && !atEntryStart && unread.length === 0;
      if (midLine && TIME.test(fresh.toString('latin1', 0, MAX_TIME_CHARS))) endLine(out);
      unread = unread.length === 0 ? fresh : Buffer.concat([unread, fresh]);
      read(out, false);
      // The chunk belongs to the engine's reader, which may use it again.
      if (unread.length > 0) unread = Buffer.from(unread);
      if (line.length > 0) line = Buffer.from(line);
      return out;
    },
    flush(): FramedLine[] {
      const out: FramedLine[] = [];
      read(out, true);
      endLine(out);
      return out;
    },
  };
}

/** The length without a UTF-8 character that is cut at the end. */
export function wholeCharacters(bytes: Uint8Array): number {
  for (let back = 1; back <= 3; back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte < 0x80) return bytes.length;
    if (byte >= 0xc0) {
      const size = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
      return size > back ? bytes.length - back : bytes.length;
    }
  }
  return bytes.length;
}

function timeFrom(match: RegExpExecArray, fallback: EntryTime): EntryTime {
  const [whole, seconds = '', fraction = '', zone = 'Z'] = match;
  const epochMs = parseIsoTime(`${seconds}${zone}`);
  if (epochMs === null) return fallback;
  const ns = BigInt(epochMs) * 1_000_000n + BigInt(fraction.padEnd(9, '0'));
  return { ns, text: whole.trimEnd() };
}

/** As the engine's files write the same time; its API fills up to nine digits. */
function withoutTrailingZeros(time: string): string {
  return time.replace(/(\.\d*?)0+Z$/, '$1Z').replace('.Z', 'Z');
}
