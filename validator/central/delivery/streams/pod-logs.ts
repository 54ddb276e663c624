/** A pod's log as one stream that outlives the agent's (contract 7, default mode; the other is made from it). */
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import type { LogFrame } from '#shared/api/agent/pod.ts';
import { dataFrame } from '#shared/http/event-stream.ts';
import { type Clock, parseIsoTime } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { findAnyPod } from '../../market/pods/pod-access.ts';
import type { Database, Pod } from '../../platform/database/tables.ts';
import type { Agents } from '../../platform/ports.ts';
import { followHub } from './log-follower.ts';
import { createLogHubs } from './log-hub.ts';
import { type LogPosition, MAX_TAIL, podLogsFrom } from './log-page.ts';
import type { PodLogsQuery } from './stream.schemas.ts';
import { createStreamGuard, leaving, type WatchOptions, watched } from './stream-guard.ts';
import { createStreamSeats, LOG_LIMITS, type StreamLimits } from './stream-limits.ts';

export type PodLogsDeps = {
  db: Database;
  clock: Clock;
  agents: Agents;
  stopping: AbortSignal;
  /** LOG_LIMITS when absent. */
  limits?: StreamLimits;
};

export type LogRequest = {
  accountId: string;
  podId: string;
  query: PodLogsQuery;
  /** Frame id of the last line the client has; means the same as `since`. */
  lastEventId: string | undefined;
  /** Aborts when the credential that opened the stream does not stand any more. */
  revoked: AbortSignal;
};

export type PodLogs = ReturnType<typeof createPodLogs>;

/** Opens log streams. */
export function createPodLogs({ db, clock, agents, stopping, limits }: PodLogsDeps) {
  const guard = createStreamGuard({ db, stopping });
  const seats = createStreamSeats(limits ?? LOG_LIMITS);
  const hubs = createLogHubs(clock);

  const watching = (request: LogRequest, signal: AbortSignal): WatchOptions => ({
    ...{ clock, signal },
    keepAlive: dataFrame({}),
    endReason: () => guard.endReason(request),
  });

  async function* follow(
    client: AgentClient,
    request: LogRequest,
    gone: AbortSignal,
  ): AsyncGenerator<string> {
    const { hub, leave } = hubs.join(request.podId, client);
    const left = new AbortController();
    const signal = AbortSignal.any([gone, stopping, request.revoked, left.signal]);
    try {
      const frames = followHub({ hub, clock, from: positionOf(request), signal });
      try {
        yield* watched(frames, watching(request, signal));
      } catch (error) {
        if (!signal.aborted) throw error;
      }
      if (gone.aborted) return;
      yield dataFrame({ meta: 'end', reason: (await guard.endReason(request)) ?? 'node_lost' });
    } finally {
      left.abort();
      leave();
    }
  }

  async function* readOnce(
    frames: AsyncGenerator<string>,
    request: LogRequest,
    gone: AbortSignal,
  ): AsyncGenerator<string> {
    let reason = 'complete';
    try {
      yield* watched(frames, watching(request, gone));
    } catch {
      reason = 'node_lost';
    }
    yield dataFrame({ meta: 'end', reason });
  }

  /** Throws 502 when the node does not answer; a pod that is not on its node yet has no log. */
  async function openOnce(client: AgentClient, request: LogRequest, gone: AbortSignal) {
    const wish = { ...positionOf(request), follow: false };
    const upstream = await podLogsFrom(client, request.podId, wish, gone).catch(
      (error: unknown) => {
        if (error instanceof ApiError && error.status === 404) return null;
        throw error;
      },
    );
    return readOnce(textOf(upstream), request, gone);
  }

  return {
    /** Throws 404, 403, 429, the reason of `gone`, or 502 when the node does not answer and nothing is followed. */
    async open(request: LogRequest, gone: AbortSignal): Promise<AsyncGenerator<string>> {
      const pod = await requireReadable(db, request);
      const client = agents.clientOf(pod.executor_id);
      gone.throwIfAborted();
      const leave = seats.take(pod.id, request.accountId);
      gone.addEventListener('abort', leave, { once: true });
      try {
        const isFollowing = request.query.follow;
        const frames = isFollowing
          ? follow(client, request, gone)
          : await openOnce(client, request, gone);
        return leaving(frames, leave);
      } catch (error) {
        leave();
        throw error;
      }
    },
  };
}

/** The agent's end is not the stream's, and its keep-alives are not ours. */
async function* textOf(frames: AsyncIterable<LogFrame> | null): AsyncGenerator<string> {
  for await (const frame of frames ?? []) {
    const isLine = 'log' in frame;
    if (isLine || ('meta' in frame && frame.meta !== 'end')) yield dataFrame(frame);
  }
}

async function requireReadable(db: Database, request: LogRequest): Promise<Pod> {
  const pod = await findAnyPod(db, request.podId);
  if (pod === undefined || pod.ended_at !== null) {
    throw new ApiError('pod_not_found', `There is no pod ${request.podId}`);
  }
  if (pod.account_id === request.accountId) return pod;
  throw new ApiError('forbidden', 'This pod belongs to another account');
}

/** A place in the log wins over a count of lines. Agents take a frame id or milliseconds. */
function positionOf({ query, lastEventId }: LogRequest): LogPosition {
  const since = lastEventId ?? query.since;
  if (since === undefined) return { tail: query.tail };
  const atMs = parseIsoTime(since);
  return { tail: MAX_TAIL, since: atMs === null ? since : String(atMs) };
}
