/** One reader's way through a pod's output: over restarts and new containers, until the pod is gone. */
import type { PodPhase } from '#shared/agent-api/pod.ts';
import type { Clock } from '#shared/clock.ts';
import { type ContainerEngine, type ContainerState, EngineError } from '../docker/engine.ts';
import type { LogBatch } from './keep-alive.ts';
import { createLineFramer, type FramedLine, type LogPosition, shortId } from './log-frames.ts';
import { createResumeFilter, readingStartMs } from './log-resume.ts';

export type LogEngine = Pick<ContainerEngine, 'containerLogs' | 'inspectContainer'>;

/** Null when there is no such pod (any more). */
export type PodLogSource = (
  podId: string,
) => Promise<{ containerId: string | null; phase: PodPhase } | null>;

export type FollowOptions = {
  clock: Clock;
  engine: LogEngine;
  source: PodLogSource;
  podId: string;
  tail: number;
  follow: boolean;
  since: LogStart;
};

/** Where to begin: at a frame that was seen, at a time, or (null) at the last `tail` lines. */
export type LogStart =
  | { kind: 'frame'; container: string; at: LogPosition }
  | { kind: 'time'; ms: number }
  | null;

/** How soon a container that was started, replaced or removed is noticed. */
const LOOK_AGAIN_MS = 1_000;

/** What was read last, so that the next reading goes on from there. */
type Progress = {
  container: string;
  /** Null until the first line. */
  at: LogPosition | null;
};

export async function* followPod(
  options: FollowOptions,
  signal: AbortSignal,
): AsyncGenerator<LogBatch> {
  const { clock, engine, source, podId, follow } = options;
  const openedMs = clock.now();
  let progress: Progress | null = null;
  let lastRun: string | null = null;
  let finishedRun: string | null = null;

  for (;;) {
    const pod = await source(podId);
    const isGone = pod === null || pod.phase === 'removed';
    const state = isGone ? null : await inspect(engine, pod.containerId);
    if (state !== null) {
      const run = `${state.id} ${state.startedMs}`;
      if (lastRun !== null && run !== lastRun) yield [{ meta: 'restart' }];
      lastRun = run;
      if (run !== finishedRun) {
        const reading = startOf(options, progress, state.id, openedMs);
        progress = { container: shortId(state.id), at: reading.after };
        yield* readLines(options, state, reading, progress, signal);
        // Read to its end while it was not running: there will be no more of it.
        if (state.status !== 'running') finishedRun = run;
      }
    }
    if (!follow) return;
    if (isGone) {
      yield [{ meta: 'end', reason: 'removed' }];
      return;
    }
    await clock.sleep(LOOK_AGAIN_MS, signal);
  }
}

type Reading = {
  tail: number | 'all';
  sinceMs?: number;
  /** Lines up to this one were sent before. */
  after: LogPosition | null;
  /** What was asked for cannot be joined to what there is. */
  gap: boolean;
};

function startOf(
  { since, tail }: FollowOptions,
  progress: Progress | null,
  containerId: string,
  openedMs: number,
): Reading {
  const container = shortId(containerId);
  if (progress !== null) {
    if (progress.container !== container) return { tail: 'all', after: null, gap: false };
    if (progress.at === null) return { tail: 'all', sinceMs: openedMs, after: null, gap: false };
    const sinceMs = readingStartMs(progress.at);
    return { tail: 'all', sinceMs, after: progress.at, gap: false };
  }
  if (since === null) return { tail, after: null, gap: false };
  if (since.kind === 'time') return { tail: 'all', sinceMs: since.ms, after: null, gap: false };
  const sinceMs = readingStartMs(since.at);
  if (since.container === container) return { tail: 'all', sinceMs, after: since.at, gap: false };
  // The container was replaced since: everything of the new one is new.
  return { tail: 'all', after: null, gap: true };
}

/** `progress` is moved along with every line, so that it is right wherever the reading breaks off. */
async function* readLines(
  { engine, follow }: FollowOptions,
  state: ContainerState,
  reading: Reading,
  progress: Progress,
  signal: AbortSignal,
): AsyncGenerator<LogBatch> {
  if (reading.gap) yield [{ meta: 'gap', reason: 'container replaced' }];
  const framer = createLineFramer(state.id);
  const filter = createResumeFilter(reading.after);
  const since = reading.sinceMs === undefined ? {} : { sinceMs: reading.sinceMs };
  const query = { tail: reading.tail, follow: follow && state.status === 'running', ...since };

  function toSend(lines: FramedLine[]): LogBatch {
    const batch: LogBatch = [];
    for (const { frame, at } of lines) {
      const verdict = filter.judge(at);
      if (verdict === 'drop') continue;
      if (verdict === 'gap') batch.push({ meta: 'gap', reason: 'older output is gone' });
      batch.push(frame);
      // Before it is sent: a reader who leaves now does not come back to this stream.
      progress.at = at;
    }
    return batch;
  }

  try {
    for await (const chunk of engine.containerLogs(state.id, query, signal)) {
      const batch = toSend(framer.push(chunk));
      if (batch.length > 0) yield batch;
    }
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    // A follower goes on when the engine is back, or with the container's successor. Output that merely
    // breaks off would look complete to any other reader.
    if (!follow) yield [{ meta: 'gap', reason: 'the engine stopped answering' }];
  }
  const rest = toSend(framer.flush());
  if (rest.length > 0) yield rest;
}

/** Null also before the first start, and while the engine is away: the next look will tell. */
async function inspect(engine: LogEngine, id: string | null): Promise<ContainerState | null> {
  if (id === null) return null;
  try {
    const state = await engine.inspectContainer(id);
    return state === null || state.startedMs === 0 ? null : state;
  } catch (error) {
    if (error instanceof EngineError) return null;
    throw error;
  }
}
