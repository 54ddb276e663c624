/** Opens log streams: who may have how many, and from where they begin. */
import type { LogsQuery } from '#shared/api/agent/pod.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { type BuildLogSource, NO_BUILDS } from './build-frames.ts';
import { type LiveFrames, liveFrames } from './keep-alive.ts';
import { batchOf, type LogBatch } from './log-batch.ts';
import { followPod, type LogEngine, type LogStart, type PodLogSource } from './log-follow.ts';
import { parseFrameId } from './log-frames.ts';
import { createLookAt } from './log-look.ts';
import { createLogShelf } from './log-shelf.ts';

export type LogService = ReturnType<typeof createLogService>;

/**
 * Following streams per pod; one more is refused. Each costs one batch of frames when it stalls (about
 * 256 KiB and the socket's buffers); what it does not read stays in the engine's files.
 */
export const MAX_FOLLOWERS = 64;
const RETRY_AFTER_SECONDS = '5';

export type LogServiceOptions = {
  clock: Clock;
  engine: LogEngine;
  podLogSource: PodLogSource;
  /** Without it no image is built here. */
  builds?: BuildLogSource;
  /** Called with what a stream sends. */
  onFrames?(batch: LogBatch): void;
};

export function createLogService({
  clock,
  engine,
  podLogSource,
  builds = NO_BUILDS,
  onFrames = () => undefined,
}: LogServiceOptions) {
  const followers = new Map<string, number>();
  const streams = new Set<LiveFrames>();
  const look = createLookAt(clock, engine);
  const shelf = createLogShelf(clock);

  /** Gives the place back when called; more calls do nothing. */
  function takePlace(podId: string): () => void {
    const count = followers.get(podId) ?? 0;
    if (count >= MAX_FOLLOWERS) {
      throw new ApiError('rate_limited', `At most ${MAX_FOLLOWERS} readers may follow a pod`, {
        headers: { 'Retry-After': RETRY_AFTER_SECONDS },
      });
    }
    followers.set(podId, count + 1);
    return () => {
      const left = (followers.get(podId) ?? 1) - 1;
      if (left > 0) followers.set(podId, left);
      else followers.delete(podId);
    };
  }

  return {
    /** Streams that follow a pod now. */
    followers: () => [...followers.values()].reduce((sum, count) => sum + count, 0),
    /**
     * Frames as they are pulled: a reader that stops reading costs one batch of memory and holds up
     * nobody. Throws ApiError before the first frame; the caller must `return` what it does not finish.
     */
    async open(podId: string, query: LogsQuery): Promise<LiveFrames> {
      const { tail, follow } = query;
      const since = startFrom(query.since);
      const pod = await podLogSource(podId);
      if (pod === null) throw new ApiError('pod_not_found', 'There is no such pod on this node');
      if (!follow && pod.containerId !== null) await requireEngine(engine, pod.containerId);
      const leavePlace = follow ? takePlace(podId) : () => undefined;
      const stream = query.stream ?? null;
      const source = podLogSource;
      const reading = { podId, tail, follow, stream, since };
      const options = { clock, engine, look, shelf, source, builds, ...reading };
      const frames = liveFrames(
        clock,
        (signal) => followPod(options, signal),
        () => {
          leavePlace();
          streams.delete(frames);
        },
        (text) => onFrames(batchOf(text)),
      );
      streams.add(frames);
      return frames;
    },

    /** Ends every stream, so that the server can close. */
    close(): void {
      for (const stream of streams) stream.end({ meta: 'end', reason: 'shutdown' });
    },
  };
}

/** A status can be sent only before the first frame: an engine that is away is told there. */
async function requireEngine(engine: LogEngine, containerId: string): Promise<void> {
  await engine.inspectContainer(containerId).catch((cause: unknown) => {
    throw new ApiError('upstream_unavailable', 'The container engine does not answer', { cause });
  });
}

function startFrom(since: string | undefined): LogStart {
  if (since === undefined) return null;
  if (/^\d{1,15}$/.test(since)) return { kind: 'time', ms: Number(since) };
  const frame = parseFrameId(since);
  if (frame !== null) return { kind: 'frame', ...frame };
  const problem = {
    field: 'query.since',
    message: 'Neither a time nor a frame id',
    type: 'invalid',
  };
  throw new ApiError('validation_error', 'Request validation failed', {
    validationErrors: [problem],
  });
}
