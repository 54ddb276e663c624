/** Converts the engine's json-file entries to log frames, without decoding most of them. Pure. */
import { dataFrame } from '#shared/http/event-stream.ts';
import { parseIsoTime } from '#shared/runtime/clock.ts';
import { ENTRY_BYTES, MAX_LINE_BYTES, type StreamName, wholeCharacters } from './log-frames.ts';

/** Frames as text, with the end offset and stream of each. */
export type LineBlock = { text: string; ends: number[]; streams: StreamName[] };

/** State that later entries depend on. Immutable: `parseEntries` returns a new one. */
export type ParseState = {
  /** Unfinished lines, from entries without a newline. */
  open: Readonly<Record<StreamName, OpenLine | null>>;
  /** The latest timestamps, newest last, with the number of lines of each. */
  recent: readonly { ns: string; count: number }[];
};

type OpenLine = { time: string; ns: string; bytes: Buffer };

export const FRESH: ParseState = { open: { stdout: null, stderr: null }, recent: [] };

/** Lines with the same timestamp are never separated by more other timestamps than this. */
const MAX_TIMES = 64;

const HEAD = '{"log":"';
const MIDDLE = '","stream":"';
const BEFORE_TIME = '","time":"';
const TAIL = 'Z"}';
const NAME_CHARS = 6;
const SECONDS_CHARS = 19;
const FRACTION_DIGITS = 9;
const BACKSLASH = 0x5c;

type Entry = { log: string; stream: StreamName; time: string };

/** Parses whole entries, each with its newline. Skips broken entries. */
export function parseEntries(
  text: string,
  container: string,
  before: ParseState,
): { block: LineBlock; after: ParseState } {
  const block: LineBlock = { text: '', ends: [], streams: [] };
  const open = { ...before.open };
  const numbering = createNumbering(before.recent);
  const nsOf = createTimeReader();

  function add(json: string, stream: StreamName, time: string, ns: string): void {
    const id = `${container}.${ns}.${numbering.next(ns)}`;
    block.text += `data: {"log":${json},"id":"${id}","ts":"${time}","stream":"${stream}"}\n\n`;
    block.ends.push(block.text.length);
    block.streams.push(stream);
  }

  function addDecoded({ log, stream, time }: Entry): void {
    const ns = nsOf(time);
    if (ns === null) return;
    let line: OpenLine | null = open[stream] ?? { time, ns, bytes: Buffer.alloc(0) };
    const fresh = Buffer.from(log);
    const isLast = log.endsWith('\n') || fresh.length < ENTRY_BYTES;
    line = { ...line, bytes: Buffer.concat([line.bytes, fresh]) };
    while (
      line.bytes.length > MAX_LINE_BYTES ||
      (!isLast && line.bytes.length === MAX_LINE_BYTES)
    ) {
      const whole = wholeCharacters(line.bytes.subarray(0, MAX_LINE_BYTES));
      add(JSON.stringify(line.bytes.toString('utf8', 0, whole)), stream, line.time, line.ns);
      line = { ...line, bytes: line.bytes.subarray(whole) };
    }
    if (isLast && line.bytes.length > 0) {
      add(JSON.stringify(line.bytes.toString('utf8')), stream, line.time, line.ns);
    }
    open[stream] = isLast ? null : line;
  }

  for (let at = 0; at < text.length; ) {
    const end = text.indexOf('\n', at);
    if (end === -1) break;
    const quote = text.indexOf('"', at + HEAD.length);
    const streamAt = quote + MIDDLE.length;
    const stream = text.startsWith('stdout', streamAt) ? 'stdout' : 'stderr';
    const timeAt = streamAt + NAME_CHARS + BEFORE_TIME.length;
    const isPlain =
      text.startsWith(HEAD, at) &&
      text.startsWith(MIDDLE, quote) &&
      text.startsWith(BEFORE_TIME, streamAt + NAME_CHARS) &&
      text.startsWith(TAIL, end - TAIL.length) &&
      text.startsWith(stream, streamAt);
    const time = isPlain ? text.slice(timeAt, end - 2) : '';
    const ns = isPlain && open[stream] === null && endsLine(text, quote) ? nsOf(time) : null;
    if (ns !== null) {
      add(text.slice(at + HEAD.length - 1, quote + 1), stream, time, ns);
    } else {
      const entry = decode(text.slice(at, end));
      if (entry !== null) addDecoded(entry);
    }
    at = end + 1;
  }
  makeFlat(block.text);
  return { block, after: { open, recent: numbering.recent() } };
}

/** Flattens a string built by concatenation, so that V8 releases the strings that it was cut from. */
function makeFlat(text: string): void {
  text.charCodeAt(0);
}

/** Returns the unfinished lines of a run that has ended. */
export function flushOpen(
  container: string,
  state: ParseState,
): { block: LineBlock; after: ParseState } {
  const numbering = createNumbering(state.recent);
  const block: LineBlock = { text: '', ends: [], streams: [] };
  for (const stream of ['stdout', 'stderr'] as const) {
    const line = state.open[stream];
    if (line === null || line.bytes.length === 0) continue;
    const id = `${container}.${line.ns}.${numbering.next(line.ns)}`;
    block.text += dataFrame({ log: line.bytes.toString('utf8'), id, ts: line.time, stream });
    block.ends.push(block.text.length);
    block.streams.push(stream);
  }
  return { block, after: { open: FRESH.open, recent: numbering.recent() } };
}

/** Converts an entry's time to nanoseconds, 19 digits; null if it is not a time. */
export function entryNs(time: string): string | null {
  return createTimeReader()(time);
}

/** Returns true if an escaped newline precedes the closing quote, not an escaped backslash and an n. */
function endsLine(text: string, quote: number): boolean {
  if (!text.startsWith('\\n', quote - 2)) return false;
  let slashes = 1;
  while (text.charCodeAt(quote - 2 - slashes) === BACKSLASH) slashes += 1;
  return slashes % 2 === 1;
}

/**
 * Decodes entries with attributes or quotes. After a crash of the engine a line may hold two entries, of which
 * the second is whole.
 */
function decode(text: string): Entry | null {
  return asEntry(text) ?? asEntry(text.slice(Math.max(0, text.lastIndexOf(HEAD))));
}

function asEntry(text: string): Entry | null {
  try {
    const { log = '', stream, time } = JSON.parse(text);
    const isEntry = typeof log === 'string' && typeof time === 'string';
    if (!isEntry || (stream !== 'stdout' && stream !== 'stderr')) return null;
    return { log, stream, time };
  } catch {
    return null;
  }
}

/** Caches the parsed second, the expensive part, which consecutive times mostly share. */
function createTimeReader() {
  let seconds = '';
  let prefix: string | null = null;
  return (time: string): string | null => {
    const zone = time.endsWith('Z') ? time.length - 1 : time.length - '+00:00'.length;
    const key = time.startsWith(seconds) && seconds !== '' && time.endsWith('Z');
    if (!key) {
      const epochMs = parseIsoTime(time.slice(0, SECONDS_CHARS) + time.slice(zone));
      seconds = time.endsWith('Z') ? time.slice(0, SECONDS_CHARS) : '';
      prefix = epochMs === null ? null : String(Math.floor(epochMs / 1000)).padStart(10, '0');
    }
    const fraction = time.slice(SECONDS_CHARS + 1, zone);
    if (prefix === null || fraction.length > FRACTION_DIGITS || !/^\d*$/.test(fraction))
      return null;
    return prefix + fraction.padEnd(FRACTION_DIGITS, '0');
  };
}

/** Numbers lines that have the same timestamp. Lines of the other stream may come between them. */
function createNumbering(recent: ParseState['recent']) {
  const times = recent.map((each) => ({ ...each }));
  let latest = times.reduce((most, { ns }) => (ns > most ? ns : most), '');
  return {
    next(ns: string): number {
      const known = ns > latest ? undefined : times.findLast((each) => each.ns === ns);
      if (known !== undefined) {
        known.count += 1;
        return known.count - 1;
      }
      if (ns > latest) latest = ns;
      times.push({ ns, count: 1 });
      // Trimmed rarely, because it moves the whole list.
      if (times.length > 16 * MAX_TIMES) times.splice(0, times.length - MAX_TIMES);
      return 0;
    },
    recent: () => times.slice(-MAX_TIMES),
  };
}
