/** What a log stream sends at a time, in figures. Pure. */
import type { LogText } from './keep-alive.ts';
import { droppedIn } from './log-gap.ts';

/** `dropped`: how many lines it says to lack, 0 where it cannot say, null for none. */
export type LogBatch = { bytes: number; lines: number; dropped: number | null };

/** How the frame of a line begins; no line holds it, for its quotes are escaped. */
const LINE = 'data: {"log":';

/** Counts without reading what the lines say. */
export function batchOf(text: LogText): LogBatch {
  let lines = 0;
  for (let at = text.indexOf(LINE); at !== -1; at = text.indexOf(LINE, at + LINE.length))
    lines += 1;
  return { bytes: Buffer.byteLength(text), lines, dropped: droppedIn(text) };
}
