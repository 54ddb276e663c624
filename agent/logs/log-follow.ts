/** One reader's stream of a pod's output. */
import type { PodPhase } from '#shared/api/agent/pod.ts';
import { dataFrame } from '#shared/http/event-stream.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { ContainerEngine, ContainerState } from '../containers/engine/engine.ts';
import { type BuildLogSource, type BuildStart, createBuildReader } from './build-frames.ts';
import { type Reading, readFromEngine, readingStartMs } from './engine-stream.ts';
import type { LogFilePool } from './log-file.ts';
import { type FrameText, type LogPosition, type StreamName, shortId } from './log-frames.ts';
import {
  type Start,
  startAfterFrame,
  startAtOldest,
  startAtTail,
  startAtTime,
} from './log-seek.ts';
import { type ContainerStates, readFromFile } from './log-tail.ts';

export type LogEngine = Pick<ContainerEngine, 'containerLogs' | 'inspectContainer'>;

/** Returns null if the pod does not exist. */
export type PodLogSource = (podId: string) => Promise<PodLog | null>;

type PodLog = {
  containerId: string | null;
  phase: PodPhase;
  /** Key of the build log; absent or null for an image that was not built on this node. */
  buildKey?: string | null;
};

export type FollowOptions = {
  clock: Clock;
  engine: LogEngine;
  stateOf: ContainerStates;
  files: LogFilePool;
  source: PodLogSource;
  podId: string;
  tail: number;
  follow: boolean;
  stream: StreamName | null;
  since: LogStart;
  builds: BuildLogSource;
};

/** Start of a read: after a frame, at a time, or (null) at the last `tail` lines. */
export type LogStart =
  | { kind: 'frame'; container: string; at: LogPosition }
  | { kind: 'time'; ms: number }
  | null;

/** Interval at which a start, replacement or removal of the container is detected. */
const RECHECK_MS = 1_000;

/** Read position in a container's log. */
type Progress = {
  container: string;
  /** Position in its file; null when the file is not accessible. */
  file: { start: Start; open: OpenLog } | null;
  /** Position in the engine's stream; null until the first line. */
  at: LogPosition | null;
};

type OpenLog = NonNullable<Awaited<ReturnType<LogFilePool['acquire']>>>;

/** Yields a pod's build log and output over restarts and replaced containers, until the pod is removed. */
export async function* followPodLog(
  options: FollowOptions,
  signal: AbortSignal,
): AsyncGenerator<FrameText> {
  const { clock, source, podId, follow } = options;
  const openedMs = clock.now();
  let progress: Progress | null = null;
  let lastRun: string | null = null;
  let finishedRun: string | null = null;
  let build: OpenBuild | null = null;

  try {
    for (;;) {
      const pod = await source(podId);
      const isGone = pod === null || pod.phase === 'removed';
      const state = isGone ? null : await startedState(options.stateOf, pod.containerId);
      const buildKey = pod?.buildKey ?? null;
      if (buildKey !== null && options.stream !== 'stderr') {
        if (build?.key !== buildKey)
          build = await openBuild(options, buildKey, state, build !== null);
        const lines = await build.reader.more();
        if (lines !== '') yield lines;
      }
      if (state !== null) {
        const run = `${state.id} ${state.startedMs}`;
        if (lastRun !== null && run !== lastRun) yield dataFrame({ meta: 'restart' });
        lastRun = run;
        if (run !== finishedRun) {
          const from = startOf(options, progress, state.id, openedMs, buildKey);
          progress = await progressIn(progress, shortId(state.id), from.after);
          yield* readRun(options, state, { from, progress }, signal);
          // Read to its end after it stopped: no more output follows.
          if (state.status !== 'running') finishedRun = run;
        }
      }
      if (!follow) return;
      if (isGone) {
        yield dataFrame({ meta: 'end', reason: 'removed' });
        return;
      }
      await clock.sleep(RECHECK_MS, signal);
    }
  } finally {
    await progress?.file?.open.release();
  }
}

type OpenBuild = { key: string; reader: ReturnType<typeof createBuildReader> };

/**
 * Opens the build log. If the container's log has fewer than `tail` lines, the build log adds the missing number of
 * lines. A build that began while the stream was open is sent completely.
 */
async function openBuild(
  options: FollowOptions,
  key: string,
  state: ContainerState | null,
  isLater: boolean,
): Promise<OpenBuild> {
  const { builds, since, tail, files, stream } = options;
  const open = (start: BuildStart) => ({ key, reader: createBuildReader(builds, key, start) });
  if (isLater) return open({ kind: 'time', ms: 0 });
  if (since !== null) return open(since);
  const file = state === null ? null : await files.acquire(state);
  if (file === null) return open({ kind: 'tail', lines: tail });
  try {
    const { missing } = await startAtTail(file.log, tail, stream);
    return open({ kind: 'tail', lines: missing });
  } finally {
    await file.release();
  }
}

/** Returns `before` if it belongs to the same container; otherwise closes its file and returns a new progress. */
async function progressIn(
  before: Progress | null,
  container: string,
  at: LogPosition | null,
): Promise<Progress> {
  if (before?.container === container) return before;
  await before?.file?.open.release();
  return { container, file: null, at };
}

type From = Omit<Reading, 'follow' | 'stream'> & {
  /** True if the line to resume after was deleted. */
  gap: boolean;
};

function startOf(
  { since, tail }: FollowOptions,
  progress: Progress | null,
  containerId: string,
  openedMs: number,
  buildKey: string | null,
): From {
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
  // The container was replaced or built since: all of its output is new.
  const wasBuilding = buildKey !== null && since.container === shortId(buildKey);
  return { tail: 'all', after: null, gap: !wasBuilding };
}

/** Advances `progress` with every line, so that it is correct whenever the reading stops. */
async function* readRun(
  options: FollowOptions,
  state: ContainerState,
  { from, progress }: { from: From; progress: Progress },
  signal: AbortSignal,
): AsyncGenerator<FrameText> {
  if (from.gap) yield dataFrame({ meta: 'gap', reason: 'container replaced' });
  if (progress.file === null) {
    const open = await options.files.acquire(state);
    if (open === null) {
      const onLine = (at: LogPosition) => {
        progress.at = at;
      };
      yield* readFromEngine(options.engine, state, { ...options, ...from }, onLine, signal);
      return;
    }
    // Stored in `progress` before anything can fail, because followPodLog releases the log that `progress` names.
    progress.file = { open, start: startAtOldest(open.log) };
    progress.file.start = await startIn(open, from, progress.container, options.stream);
  }
  const { open, start } = progress.file;
  yield* readFromFile({ ...options, state }, open.log, start, signal);
}

async function startIn(
  { log }: OpenLog,
  { after, sinceMs, tail }: From,
  container: string,
  stream: StreamName | null,
): Promise<Start> {
  if (after !== null) return startAfterFrame(log, container, after, stream);
  if (sinceMs !== undefined) return startAtTime(log, sinceMs);
  return tail === 'all' ? startAtOldest(log) : startAtTail(log, tail, stream);
}

/** Null before the first start and while the engine does not answer. */
async function startedState(
  stateOf: ContainerStates,
  id: string | null,
): Promise<ContainerState | null> {
  const state = id === null ? null : await stateOf(id);
  if (state === null || typeof state === 'string') return null;
  return state.startedMs === 0 ? null : state;
}
