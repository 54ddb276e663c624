/** Frames of a log stream as text: ids, positions, gaps and counts. Pure. */
import { dataFrame } from '#shared/http/event-stream.ts';

/** One or more whole frames as they are sent; never empty. */
export type FrameText = string;

export type StreamName = 'stdout' | 'stderr';

/** Position of a line: the engine's time in nanoseconds, and its number among the lines of that time. */
export type LogPosition = { ns: bigint; seq: number };

/** Maximum length of a line; longer ones are split. */
export const MAX_LINE_BYTES = 64 * 1024;
/** The engine stores longer lines in entries of exactly this size, each with its own time. */
export const ENTRY_BYTES = 16 * 1024;

/** Frame ids begin with this many characters of the container's id. */
const ID_CHARS = 12;

/** No log line contains these texts, because quotes in lines are escaped. */
const GAP = '{"meta":"gap"';
const DROPPED = /\{"meta":"gap"[^}]*"dropped":(\d+)/g;
const LINE = 'data: {"log":';

/** Splits a frame id into its parts; null if it is not a frame id. */
export function parseFrameId(id: string): { container: string; at: LogPosition } | null {
  const match = /^([0-9a-f]{12})\.(\d{1,19})\.(\d{1,9})$/.exec(id);
  if (match?.[1] === undefined) return null;
  const at = { ns: BigInt(match[2] ?? 0), seq: Number(match[3]) };
  return { container: match[1], at };
}

/** Returns the prefix of frame ids for a container id or a build key; both are hexadecimal. */
export function shortId(id: string): string {
  return id.slice(0, ID_CHARS);
}

/** Returns the length without a UTF-8 character that is cut off at the end. */
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

/** Returns a gap frame for rotated lines; `dropped` is an estimate, null when unknown. */
export function rotatedAway(dropped: number | null): FrameText {
  const count = dropped === null ? {} : { dropped };
  return dataFrame({ meta: 'gap', reason: 'rotated away', ...count });
}

/** `dropped`: lines missing according to the gap frames, 0 if they give no number, null without a gap. */
export type FrameCounts = { bytes: number; lines: number; dropped: number | null };

/** Counts without parsing the lines. */
export function countFrames(text: FrameText): FrameCounts {
  let lines = 0;
  for (let at = text.indexOf(LINE); at !== -1; at = text.indexOf(LINE, at + LINE.length))
    lines += 1;
  return { bytes: Buffer.byteLength(text), lines, dropped: countDropped(text) };
}

function countDropped(text: FrameText): number | null {
  if (!text.includes(GAP)) return null;
  let lines = 0;
  for (const [, count] of text.matchAll(DROPPED)) lines += Number(count);
  return lines;
}
