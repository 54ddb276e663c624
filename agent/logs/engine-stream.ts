/**
 * A container's output through the engine's log API. Used where the log file is not accessible (remote or
 * rootless engine).
 */
import { dataFrame } from '#shared/http/event-stream.ts';
import { parseIsoTime } from '#shared/runtime/clock.ts';
import {
  type ContainerEngine,
  type ContainerState,
  EngineError,
  type LogChunk,
} from '../containers/engine/engine.ts';
import {
  ENTRY_BYTES,
  type FrameText,
  type LogPosition,
  MAX_LINE_BYTES,
  type StreamName,
  shortId,
  wholeCharacters,
} from './log-frames.ts';

/**
 * Number of recent timestamps whose lines are counted. Lines with the same timestamp are never separated by more other
 * timestamps than this.
 */
const MAX_TIMES = 64;
const NEWLINE = 0x0a;
/** Length of the longest timestamp: `2026-11-20T23:50:00.123456789+00:00 `. */
const MAX_TIME_CHARS = 36;
const TIME = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?(Z|[+-]\d{2}:\d{2}) /;

export type Reading = {
  tail: number | 'all';
  sinceMs?: number;
  /** Last line that was already sent. */
  after: LogPosition | null;
  follow: boolean;
  stream: StreamName | null;
};

/**
 * Yields a container's output as frames. Calls `onLine` with every line before it is sent. The engine's log API may
 * lose or repeat lines when the log file is rotated.
 */
export async function* readFromEngine(
  engine: Pick<ContainerEngine, 'containerLogs'>,
  state: ContainerState,
  { tail, sinceMs, after, follow, stream }: Reading,
  onLine: (at: LogPosition) => void,
  signal: AbortSignal,
): AsyncGenerator<FrameText> {
  const framer = createLineFramer(state.id);
  const resume = createResumeFilter(after);
  const since = sinceMs === undefined ? {} : { sinceMs };
  const query = { tail, follow: follow && state.status === 'running', ...since };

  function toSend(lines: FramedLine[]): FrameText {
    let text = '';
    for (const { frame, at } of lines) {
      const verdict = resume(at);
      if (verdict === 'drop') continue;
      if (verdict === 'gap') text += dataFrame({ meta: 'gap', reason: 'older output is gone' });
      if (stream === null || frame.stream === stream) text += dataFrame(frame);
      // Recorded before the yield: a reader that closes the stream ends this generator at the yield.
      onLine(at);
    }
    return text;
  }

  try {
    for await (const chunk of engine.containerLogs(state.id, query, signal)) {
      const text = toSend(framer.push(chunk));
      if (text !== '') yield text;
    }
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    // A follower continues when the engine answers again or the container is replaced. Readers that do not follow
    // receive a gap frame, because they would otherwise take truncated output for complete output.
    if (!follow) yield dataFrame({ meta: 'gap', reason: 'the engine stopped answering' });
  }
  const rest = toSend(framer.flush());
  if (rest !== '') yield rest;
}

/** Upper bound on how far the timestamps of stdout and stderr are out of order. */
const CROSSING_SLACK_MS = 1_000;

/** Returns the time from which to read so that the line at `after` is included. */
export function readingStartMs(after: LogPosition): number {
  return Math.max(0, Number(after.ns / 1_000_000n) - CROSSING_SLACK_MS);
}

/** `gap`: the line to resume after was deleted, and this is the first line after its position. */
type ResumeVerdict = 'send' | 'drop' | 'gap';

/**
 * Drops lines up to the one at `after`. It compares positions rather than times alone, because the engine writes two
 * streams into one file and their timestamps may be slightly out of order.
 */
function createResumeFilter(after: LogPosition | null): (at: LogPosition) => ResumeVerdict {
  let passed = after === null;
  return (at) => {
    if (after === null || (passed && (at.ns !== after.ns || at.seq !== after.seq))) return 'send';
    if (at.ns === after.ns && at.seq === after.seq) {
      passed = true;
      return 'drop';
    }
    if (at.ns <= after.ns) return 'drop';
    passed = true;
    return 'gap';
  };
}

type LineFrame = { log: string; id: string; ts: string; stream: StreamName };
type FramedLine = { frame: LineFrame; at: LogPosition };

/** Splits a container's output into line frames. Buffers at most one line per stream. */
export function createLineFramer(containerId: string) {
  const seqOf = createNumbering();

  function frame(stream: StreamName, time: EntryTime, bytes: Uint8Array): FramedLine {
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
    /** Returns unfinished lines at the end of the output. */
    flush: (): FramedLine[] => [...lines.stdout.flush(), ...lines.stderr.flush()],
  };
}

/** Numbers lines that have the same timestamp. Lines of the other stream may come between them. */
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

/** Retains byte order marks, which are part of the output; invalid bytes become U+FFFD. */
const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

type EntryTime = { ns: bigint; text: string };

/** Splits the bytes of one stream into lines. */
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

  /** Returns false if more bytes are needed. */
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
    const size = Math.min(end, Math.max(room, 0));
    const piece = unread.subarray(0, size);
    line = line.length === 0 ? piece : Buffer.concat([line, piece]);
    unread = unread.subarray(size);
    entryBytes += size;
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
      // If a container stopped in mid-line, a timestamp at the start of a chunk begins the first entry of the next run.
      const fresh = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
      const midLine = line.length > 0 && !atEntryStart && unread.length === 0;
      if (midLine && TIME.test(fresh.toString('latin1', 0, MAX_TIME_CHARS))) endLine(out);
      unread = unread.length === 0 ? fresh : Buffer.concat([unread, fresh]);
      read(out, false);
      // The engine's reader may reuse the chunk's memory.
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

function timeFrom(match: RegExpExecArray, fallback: EntryTime): EntryTime {
  const [whole, seconds = '', fraction = '', zone = 'Z'] = match;
  const epochMs = parseIsoTime(`${seconds}${zone}`);
  if (epochMs === null) return fallback;
  const ns = BigInt(epochMs) * 1_000_000n + BigInt(fraction.padEnd(9, '0'));
  return { ns, text: whole.trimEnd() };
}

/** Removes trailing zeros, as in the engine's files; the engine's API pads fractions to nine digits. */
function withoutTrailingZeros(time: string): string {
  return time.replace(/(\.\d*?)0+Z$/, '$1Z').replace('.Z', 'Z');
}
