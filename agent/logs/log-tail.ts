/** A container's output from its json-file: at a reader's own pace, and at once when the engine writes. */

import { dataFrame } from '#shared/http/event-stream.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { ContainerState } from '../containers/engine/engine.ts';
import type { StreamName } from './json-lines.ts';
import type { LogText } from './keep-alive.ts';
import type { LogFile } from './log-file.ts';
import { rotatedAway } from './log-gap.ts';
import type { LookAt } from './log-look.ts';
import { isPast, type Start, selectLines } from './log-seek.ts';

/** How soon a container that was stopped, restarted or removed is noticed. */
const LOOK_AGAIN_MS = 1_000;

export type TailOptions = {
  clock: Clock;
  look: LookAt;
  state: ContainerState;
  stream: StreamName | null;
  follow: boolean;
};

/**
 * Frames from `start`, which is moved along, to the end of this run of the container, or to what is there
 * now when nothing is followed. Nobody waits for a reader that stalls: it goes on from the file, with a gap
 * if the engine has thrown that away.
 */
export async function* readFromFile(
  { clock, look, state, stream, follow }: TailOptions,
  log: LogFile,
  start: Start,
  signal: AbortSignal,
): AsyncGenerator<LogText> {
  let isLive = follow && state.status === 'running';
  let end = await log.end();
  let lookAtMs = clock.monotonicMs() + LOOK_AGAIN_MS;
  if (start.gap) yield dataFrame({ meta: 'gap', reason: 'older output is gone' });
  start.gap = false;
  signal.addEventListener('abort', log.wake, { once: true });
  while (!signal.aborted) {
    const { block, next, atEnd, gap } = await log.read(start.cursor);
    start.cursor = next;
    if (gap !== null) {
      start.drop = 0;
      yield rotatedAway(gap.dropped);
    }
    const text = selectLines(block, start, stream);
    if (text !== '') yield text;
    if (!isLive && (atEnd || isPast(next, end))) break;
    if (isLive && clock.monotonicMs() >= lookAtMs) {
      isLive = await isSameRun(look, state);
      end = await log.end();
      lookAtMs = clock.monotonicMs() + LOOK_AGAIN_MS;
    } else if (isLive && atEnd) {
      await log.changed();
    }
  }
  if (signal.aborted) return;
  const { block, next } = log.flush(start.cursor);
  start.cursor = next;
  const rest = selectLines(block, start, stream);
  if (rest !== '') yield rest;
}

/** An engine that does not answer tells nothing: its containers and their files live on. */
async function isSameRun(look: LookAt, { id, startedMs }: ContainerState): Promise<boolean> {
  const now = await look(id);
  if (now === 'unknown') return true;
  return now !== 'gone' && now.status === 'running' && now.startedMs === startedMs;
}
