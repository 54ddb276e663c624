/** One reader's way through a pod's output: over restarts and new containers, until the pod is gone. */
import type { PodPhase } from '#shared/api/agent/pod.ts';
import { dataFrame } from '#shared/http/event-stream.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { ContainerEngine, ContainerState } from '../containers/engine/engine.ts';
import {
  type BuildLogSource,
  type BuildStart,
  createBuildReader,
  shortBuildId,
} from './build-frames.ts';
import type { StreamName } from './json-lines.ts';
import type { LogText } from './keep-alive.ts';
import { type Reading, readFromEngine } from './log-engine.ts';
import { type LogPosition, shortId } from './log-frames.ts';
import type { LookAt } from './log-look.ts';
import { readingStartMs } from './log-resume.ts';
import {
  type Start,
  startAfterFrame,
  startAtOldest,
  startAtTail,
  startAtTime,
} from './log-seek.ts';
import type { LogShelf } from './log-shelf.ts';
import { readFromFile } from './log-tail.ts';

export type LogEngine = Pick<ContainerEngine, 'containerLogs' | 'inspectContainer'>;

/** Null when there is no such pod (any more). */
export type PodLogSource = (podId: string) => Promise<PodLog | null>;

type PodLog = {
  containerId: string | null;
  phase: PodPhase;
  /** By what the log of its image's build goes; absent or null for an image that was not built here. */
  buildKey?: string | null;
};

export type FollowOptions = {
  clock: Clock;
  engine: LogEngine;
  look: LookAt;
  shelf: LogShelf;
  source: PodLogSource;
  podId: string;
  tail: number;
  follow: boolean;
  stream: StreamName | null;
  since: LogStart;
  builds: BuildLogSource;
};

/** Where to begin: at a frame that was seen, at a time, or (null) at the last `tail` lines. */
export type LogStart =
  | { kind: 'frame'; container: string; at: LogPosition }
  | { kind: 'time'; ms: number }
  | null;

/** How soon a container that was started, replaced or removed is noticed. */
const LOOK_AGAIN_MS = 1_000;

/** How far a container has been read, so that the next reading of it goes on from there. */
type Progress = {
  container: string;
  /** By its file, when that can be read. */
  file: { start: Start; taken: Taken } | null;
  /** By the engine's stream; null until the first line. */
  at: LogPosition | null;
};

type Taken = NonNullable<Awaited<ReturnType<LogShelf['take']>>>;

export async function* followPod(
  options: FollowOptions,
  signal: AbortSignal,
): AsyncGenerator<LogText> {
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
      const state = isGone ? null : await started(options.look, pod.containerId);
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
          // Read to its end while it was not running: there will be no more of it.
          if (state.status !== 'running') finishedRun = run;
        }
      }
      if (!follow) return;
      if (isGone) {
        yield dataFrame({ meta: 'end', reason: 'removed' });
        return;
      }
      await clock.sleep(LOOK_AGAIN_MS, signal);
    }
  } finally {
    await progress?.file?.taken.done();
  }
}

type OpenBuild = { key: string; reader: ReturnType<typeof createBuildReader> };

/** Of `tail` lines, those that the container does not have; all of a build that came while it was read. */
async function openBuild(
  options: FollowOptions,
  key: string,
  state: ContainerState | null,
  isLater: boolean,
): Promise<OpenBuild> {
  const { builds, since, tail, shelf, stream } = options;
  const open = (start: BuildStart) => ({ key, reader: createBuildReader(builds, key, start) });
  if (isLater) return open({ kind: 'time', ms: 0 });
  if (since !== null) return open(since);
  const taken = state === null ? null : await shelf.take(state);
  if (taken === null) return open({ kind: 'tail', lines: tail });
  try {
    const { missing } = await startAtTail(taken.log, tail, stream);
    return open({ kind: 'tail', lines: missing });
  } finally {
    await taken.done();
  }
}

/** Goes on in the same container, and lets go of another's file. */
async function progressIn(
  before: Progress | null,
  container: string,
  at: LogPosition | null,
): Promise<Progress> {
  if (before?.container === container) return before;
  await before?.file?.taken.done();
  return { container, file: null, at };
}

type From = Omit<Reading, 'follow' | 'stream'> & {
  /** What was asked for cannot be joined to what there is. */
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
  // The container was replaced since, or was still being built: everything of the new one is new.
  const wasBuilding = buildKey !== null && since.container === shortBuildId(buildKey);
  return { tail: 'all', after: null, gap: !wasBuilding };
}

/** `progress` is moved along with every line, so that it is right wherever the reading breaks off. */
async function* readRun(
  options: FollowOptions,
  state: ContainerState,
  { from, progress }: { from: From; progress: Progress },
  signal: AbortSignal,
): AsyncGenerator<LogText> {
  if (from.gap) yield dataFrame({ meta: 'gap', reason: 'container replaced' });
  if (progress.file === null) {
    const taken = await options.shelf.take(state);
    if (taken === null) {
      const onLine = (at: LogPosition) => {
        progress.at = at;
      };
      yield* readFromEngine(options.engine, state, { ...options, ...from }, onLine, signal);
      return;
    }
    // Remembered before anything can fail, for that is how it is given back.
    progress.file = { taken, start: startAtOldest(taken.log) };
    progress.file.start = await startIn(taken, from, progress.container, options.stream);
  }
  const { taken, start } = progress.file;
  yield* readFromFile({ ...options, state }, taken.log, start, signal);
}

async function startIn(
  { log }: Taken,
  { after, sinceMs, tail }: From,
  container: string,
  stream: StreamName | null,
): Promise<Start> {
  if (after !== null) return startAfterFrame(log, container, after, stream);
  if (sinceMs !== undefined) return startAtTime(log, sinceMs);
  return tail === 'all' ? startAtOldest(log) : startAtTail(log, tail, stream);
}

/** Null also before the first start, and while the engine is away: the next look will tell. */
async function started(look: LookAt, id: string | null): Promise<ContainerState | null> {
  const state = id === null ? null : await look(id);
  if (state === null || typeof state === 'string') return null;
  return state.startedMs === 0 ? null : state;
}
