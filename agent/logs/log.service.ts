/** Opens log streams of pods and limits their number. */
import type { LogFrame, LogsQuery } from '#shared/api/agent/pod.ts';
import { dataFrame } from '#shared/http/event-stream.ts';
import { type LiveFrames, liveFrames } from '#shared/http/keep-alive.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { type BuildLogSource, NO_BUILDS } from './build-frames.ts';
import { createLogFilePool } from './log-file.ts';
import { followPodLog, type LogEngine, type LogStart, type PodLogSource } from './log-follow.ts';
import { countFrames, type FrameCounts, type FrameText, parseFrameId } from './log-frames.ts';
import { type ContainerStates, createContainerStates } from './log-tail.ts';

export type LogService = ReturnType<typeof createLogService>;

/**
 * Maximum of following streams per pod. A stalled stream costs one batch of frames (about 256 KiB and the
 * socket's buffers); unread output stays in the engine's files.
 */
export const MAX_FOLLOWERS = 64;
const RETRY_AFTER_SECONDS = '5';

export type LogServiceOptions = {
  clock: Clock;
  engine: LogEngine;
  podLogSource: PodLogSource;
  /** Absent if this agent builds no images. */
  builds?: BuildLogSource;
  /** Called with the counts of every batch of frames that a stream sends. */
  onFrames?(counts: FrameCounts): void;
};

export function createLogService({
  clock,
  engine,
  podLogSource,
  builds = NO_BUILDS,
  onFrames = () => undefined,
}: LogServiceOptions) {
  const followers = new Map<string, number>();
  const streams = new Set<LiveFrames<FrameText>>();
  const stateOf = createContainerStates(clock, engine);
  const files = createLogFilePool(clock);

  /** Counts a follower. The returned function, which must be called once, stops counting it. */
  function addFollower(podId: string): () => void {
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
    /** Number of streams that currently follow a pod. */
    followers: () => [...followers.values()].reduce((sum, count) => sum + count, 0),
    /**
     * Opens a pull-based stream: a stalled reader costs one batch of memory and delays no other reader.
     * Throws ApiError before the first frame. The caller must `return` a stream that it does not finish.
     */
    async open(podId: string, query: LogsQuery): Promise<LiveFrames<FrameText>> {
      const { tail, follow } = query;
      const since = startFrom(query.since);
      const pod = await podLogSource(podId);
      if (pod === null) throw new ApiError('pod_not_found', 'There is no such pod on this node');
      if (!follow && pod.containerId !== null) await requireEngine(stateOf, pod.containerId);
      const removeFollower = follow ? addFollower(podId) : () => undefined;
      const stream = query.stream ?? null;
      const ports = { clock, engine, stateOf, files, source: podLogSource, builds };
      const options = { ...ports, podId, tail, follow, stream, since };
      const frames = liveFrames<FrameText>({
        clock,
        open: (signal) => followPodLog(options, signal),
        idleFrame: dataFrame({}),
        onFrame: (text) => onFrames(countFrames(text)),
        onClose() {
          removeFollower();
          streams.delete(frames);
        },
      });
      streams.add(frames);
      return frames;
    },

    /** Ends every stream, so that the server can close. */
    close(): void {
      const last: LogFrame = { meta: 'end', reason: 'shutdown' };
      for (const stream of streams) stream.end(dataFrame(last));
    },
  };
}

/** Throws unless the engine answers. An HTTP error status can be sent only before the first frame. */
async function requireEngine(stateOf: ContainerStates, containerId: string): Promise<void> {
  if ((await stateOf(containerId)) !== 'unknown') return;
  throw new ApiError('upstream_unavailable', 'The container engine does not answer');
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
