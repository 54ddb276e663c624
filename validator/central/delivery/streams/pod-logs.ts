/** A pod's log as one stream, which continues when the agent's stream breaks. */
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import type { LogFrame } from '#shared/api/agent/pod.ts';
import { dataFrame } from '#shared/http/event-stream.ts';
import { type Clock, parseIsoTime } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Database, Pod } from '../../platform/database/tables.ts';
import type { Agents } from '../../platform/ports.ts';
import { followHub } from './log-follower.ts';
import { createLogHubs } from './log-hub.ts';
import { type LogPosition, MAX_TAIL, podLogsFrom } from './log-page.ts';
import type { PodLogsQuery } from './stream.schemas.ts';
import {
  createStreamGuard,
  type GuardOptions,
  guarded,
  type PodAccess,
  released,
} from './stream-guard.ts';
import { createStreamLimit, LOG_LIMITS, type StreamLimits } from './stream-limits.ts';

export type PodLogsDeps = {
  db: Database;
  clock: Clock;
  agents: Agents;
  pods: Pick<PodAccess, 'findAnyPod'>;
  stopping: AbortSignal;
  /** Default: LOG_LIMITS. */
  limits?: StreamLimits;
};

export type LogRequest = {
  accountId: string;
  podId: string;
  query: PodLogsQuery;
  /** Frame id of the last line that the client received; same meaning as `since`. */
  lastEventId: string | undefined;
  /** Aborts when the credential that opened the stream is revoked or expires. */
  revoked: AbortSignal;
};

export type PodLogs = ReturnType<typeof createPodLogs>;

export function createPodLogs({ db, clock, agents, pods, stopping, limits }: PodLogsDeps) {
  const guard = createStreamGuard({ db, pods, stopping });
  const limit = createStreamLimit(limits ?? LOG_LIMITS);
  const hubs = createLogHubs(clock);

  const guardOptions = (request: LogRequest, signal: AbortSignal): GuardOptions => ({
    clock,
    signal,
    keepAlive: dataFrame({}),
    endReason: () => guard.endReason(request),
  });

  async function* follow(
    client: AgentClient,
    request: LogRequest,
    gone: AbortSignal,
  ): AsyncGenerator<string> {
    const { hub, leave } = hubs.join(request.podId, client);
    const signal = AbortSignal.any([gone, stopping, request.revoked]);
    const from = positionOf(request);
    const open = (ended: AbortSignal) =>
      followHub({ hub, clock, from, signal: AbortSignal.any([signal, ended]) });
    try {
      try {
        yield* guarded(open, guardOptions(request, signal));
      } catch (error) {
        if (!signal.aborted) throw error;
      }
      if (gone.aborted) return;
      yield dataFrame({ meta: 'end', reason: (await guard.endReason(request)) ?? 'node_lost' });
    } finally {
      leave();
    }
  }

  async function* readOnce(
    open: (ended: AbortSignal) => AsyncGenerator<string>,
    request: LogRequest,
    gone: AbortSignal,
  ): AsyncGenerator<string> {
    let reason = 'complete';
    try {
      yield* guarded(open, guardOptions(request, gone));
    } catch {
      reason = 'node_lost';
    }
    yield dataFrame({ meta: 'end', reason });
  }

  /** Throws 502 if the node does not answer. The log of a pod that is not on its node yet is empty. */
  async function openOnce(client: AgentClient, request: LogRequest, gone: AbortSignal) {
    const from = { ...positionOf(request), follow: false };
    const leaving = new AbortController();
    const signal = AbortSignal.any([gone, leaving.signal]);
    const upstream = await podLogsFrom(client, request.podId, from, signal).catch(
      (error: unknown) => {
        if (error instanceof ApiError && error.status === 404) return null;
        throw error;
      },
    );
    const open = (ended: AbortSignal) => {
      ended.addEventListener('abort', () => leaving.abort(), { once: true });
      return textOf(upstream);
    };
    return readOnce(open, request, gone);
  }

  async function requireReadable(request: LogRequest): Promise<Pod> {
    const pod = await pods.findAnyPod(db, request.podId);
    if (pod === undefined || pod.ended_at !== null) {
      throw new ApiError('pod_not_found', `There is no pod ${request.podId}`);
    }
    if (pod.account_id === request.accountId) return pod;
    throw new ApiError('forbidden', 'This pod belongs to another account');
  }

  return {
    /**
     * Throws 404, 403, 429 or the abort reason of `gone`. Without `follow`, also throws 502 if the node does not
     * answer.
     */
    async open(request: LogRequest, gone: AbortSignal): Promise<AsyncGenerator<string>> {
      const pod = await requireReadable(request);
      const client = agents.clientOf(pod.executor_id);
      gone.throwIfAborted();
      const release = limit.acquire(pod.id, request.accountId);
      gone.addEventListener('abort', release, { once: true });
      try {
        const isFollowing = request.query.follow;
        const frames = isFollowing
          ? follow(client, request, gone)
          : await openOnce(client, request, gone);
        return released(frames, release);
      } catch (error) {
        release();
        throw error;
      }
    },
  };
}

/** Drops the agent's end frame and keep-alives, because this stream sends its own. */
async function* textOf(frames: AsyncIterable<LogFrame> | null): AsyncGenerator<string> {
  for await (const frame of frames ?? []) {
    const isLine = 'log' in frame;
    if (isLine || ('meta' in frame && frame.meta !== 'end')) yield dataFrame(frame);
  }
}

/**
 * Returns the start of the stream. A position in the log takes precedence over a number of lines. Agents accept a frame
 * id or milliseconds.
 */
function positionOf({ query, lastEventId }: LogRequest): LogPosition {
  const since = lastEventId ?? query.since;
  if (since === undefined) return { tail: query.tail };
  const atMs = parseIsoTime(since);
  return { tail: MAX_TAIL, since: atMs === null ? since : String(atMs) };
}
