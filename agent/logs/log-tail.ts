/** Reads a container's output from its json-file, at the pace of the reader, and as soon as the engine writes. */
import { dataFrame } from '#shared/http/event-stream.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import {
  type ContainerEngine,
  type ContainerState,
  EngineError,
} from '../containers/engine/engine.ts';
import type { LogFile } from './log-file.ts';
import { type FrameText, rotatedAway, type StreamName } from './log-frames.ts';
import { isPast, type Start, selectLines } from './log-seek.ts';

/** Returns a container's state; `unknown` while the engine does not answer. */
export type ContainerStates = (id: string) => Promise<ContainerState | 'gone' | 'unknown'>;

/** Lifetime of a cached state; shorter than the time between two checks by one reader. */
const FRESH_MS = 500;
/** Maximum number of cached states; the oldest is evicted. */
const MAX_CACHED_STATES = 256;

/** Caches container states for half a second, so that all readers share one request to the engine. */
export function createContainerStates(
  clock: Clock,
  engine: Pick<ContainerEngine, 'inspectContainer'>,
): ContainerStates {
  const cache = new Map<string, { atMs: number; state: ReturnType<ContainerStates> }>();

  async function inspect(id: string): ReturnType<ContainerStates> {
    try {
      return (await engine.inspectContainer(id)) ?? 'gone';
    } catch (error) {
      if (error instanceof EngineError) return 'unknown';
      throw error;
    }
  }

  return (id) => {
    const cached = cache.get(id);
    if (cached !== undefined && clock.monotonicMs() - cached.atMs < FRESH_MS) return cached.state;
    cache.delete(id);
    const [oldest] = cache.keys();
    if (oldest !== undefined && cache.size >= MAX_CACHED_STATES) cache.delete(oldest);
    const state = inspect(id);
    cache.set(id, { atMs: clock.monotonicMs(), state });
    return state;
  };
}

/** Interval at which a stop, restart or removal of the container is detected. */
const RECHECK_MS = 1_000;

export type TailOptions = {
  clock: Clock;
  stateOf: ContainerStates;
  state: ContainerState;
  stream: StreamName | null;
  follow: boolean;
};

/**
 * Yields frames from `start`, which it advances, to the end of this run of the container, or to the current end without
 * `follow`. A stalled reader continues from the file, with a gap frame if the engine deleted output in the meantime.
 */
export async function* readFromFile(
  { clock, stateOf, state, stream, follow }: TailOptions,
  log: LogFile,
  start: Start,
  signal: AbortSignal,
): AsyncGenerator<FrameText> {
  let isLive = follow && state.status === 'running';
  let end = await log.end();
  let recheckAtMs = clock.monotonicMs() + RECHECK_MS;
  if (start.gap) yield dataFrame({ meta: 'gap', reason: 'older output is gone' });
  start.gap = false;
  signal.addEventListener('abort', log.wake, { once: true });
  while (!signal.aborted) {
    const { block, next, atEnd, gap } = isLive
      ? await log.follow(start.cursor, signal)
      : await log.read(start.cursor);
    start.cursor = next;
    if (gap !== null) {
      start.drop = 0;
      yield rotatedAway(gap.dropped);
    }
    const text = selectLines(block, start, stream);
    if (text !== '') yield text;
    if (!isLive && (atEnd || isPast(next, end))) break;
    if (isLive && clock.monotonicMs() >= recheckAtMs) {
      isLive = await isSameRun(stateOf, state);
      end = await log.end();
      recheckAtMs = clock.monotonicMs() + RECHECK_MS;
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

/** Returns true if this run of the container continues, which is assumed while the engine does not answer. */
async function isSameRun(
  stateOf: ContainerStates,
  { id, startedMs }: ContainerState,
): Promise<boolean> {
  const now = await stateOf(id);
  if (now === 'unknown') return true;
  return now !== 'gone' && now.status === 'running' && now.startedMs === startedMs;
}
