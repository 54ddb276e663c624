/** What a stream says of lines that the engine has thrown away before it came to read them. Pure. */
import { dataFrame } from '#shared/http/event-stream.ts';
import type { LogText } from './keep-alive.ts';

/** No log line holds it: quotes in lines are escaped. */
const GAP = '{"meta":"gap"';
const DROPPED = /\{"meta":"gap"[^}]*"dropped":(\d+)/g;

/** `dropped`: how many, about; null where nobody knows. */
export function rotatedAway(dropped: number | null): LogText {
  const count = dropped === null ? {} : { dropped };
  return dataFrame({ meta: 'gap', reason: 'rotated away', ...count });
}

/** How many lines the gaps in it say to lack, 0 where they do not say; null without a gap. */
export function droppedIn(text: LogText): number | null {
  if (!text.includes(GAP)) return null;
  let lines = 0;
  for (const [, told] of text.matchAll(DROPPED)) lines += Number(told);
  return lines;
}
