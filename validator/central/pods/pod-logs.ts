/** A pod's log as one stream that outlives the agent's (contract 7, default mode). */
import type { AgentClient } from '#shared/agent-api/agent-client.ts';
import type { LogFrame } from '#shared/agent-api/pod.ts';
import { type Clock, parseIsoTime } from '#shared/clock.ts';
import { ApiError } from '#shared/errors.ts';
import { dataFrame } from '#shared/http/sse.ts';
import type { Database, Pod } from '../db/tables.ts';
import type { Agents } from '../ports.ts';
import { framesOrIdle, IDLE } from './idle-frames.ts';
import type { PodLogsQuery } from './pod.schemas.ts';
import { findPod } from './pod.store.ts';

/** How often pod and credential are looked at again while nothing is said. */
const CHECK_INTERVAL_MS = 5_000;
const KEEP_ALIVE_INTERVAL_MS = 15_000;
const FIRST_RETRY_MS = 1_000;
/** No longer than the pause between checks, so that an end is told in time during an outage too. */
const LAST_RETRY_MS = CHECK_INTERVAL_MS;
const MAX_TAIL = 10_000;
const RETRY_AFTER_SECONDS = '5';

export type PodLogsDeps = { db: Database; clock: Clock; agents: Agents; stopping: AbortSignal };

export type LogRequest = {
  accountId: string;
  podId: string;
  query: PodLogsQuery;
  /** Frame id of the last line the client has; means the same as `since`. */
  lastEventId: string | undefined;
  /** Whether the credential that opened the stream still stands. */
  stillAllowed(): Promise<boolean>;
};

export type PodLogs = ReturnType<typeof createPodLogs>;

type Upstream = AsyncGenerator<LogFrame>;
type Position = { tail: number; since?: string };
/** Where a stream is: what to ask for should the agent be lost, and when. */
type Reading = {
  at: Position;
  retryMs: number;
  checkAtMs: number;
  keepAliveAtMs: number;
  /** The last upstream broke off. */
  lost: boolean;
};

/** Opens log streams. */
export function createPodLogs({ db, clock, agents, stopping }: PodLogsDeps) {
  /** Why the stream is over; null while it is not. */
  async function endReason(request: LogRequest): Promise<string | null> {
    if (stopping.aborted) return 'server_shutdown';
    const pod = await findPod(db, request.podId);
    if (pod === undefined || pod.delete_requested_at !== null || pod.ended_at !== null) {
      return 'pod_deleted';
    }
    return (await request.stillAllowed()) ? null : 'credential_revoked';
  }

  function* keepAlive(reading: Reading): Generator<string> {
    if (clock.monotonicMs() < reading.keepAliveAtMs) return;
    reading.keepAliveAtMs = clock.monotonicMs() + KEEP_ALIVE_INTERVAL_MS;
    yield dataFrame({});
  }

  /** What one upstream says, keep-alives in between; ends with it, or as soon as the stream is over. */
  async function* relay(
    upstream: Upstream,
    request: LogRequest,
    reading: Reading,
    signal: AbortSignal,
  ): AsyncGenerator<string> {
    const frames = framesOrIdle(upstream, { clock, idleMs: CHECK_INTERVAL_MS, signal });
    try {
      for await (const frame of frames) {
        if (frame !== IDLE && 'log' in frame) {
          reading.at = { tail: MAX_TAIL, since: frame.id };
          reading.retryMs = FIRST_RETRY_MS;
          yield dataFrame(frame);
        } else if (frame !== IDLE && 'meta' in frame && frame.meta !== 'end') {
          // The agent's end is not the stream's: what it means is for the caller to find out.
          yield dataFrame(frame);
        }
        if (clock.monotonicMs() < reading.checkAtMs) continue;
        reading.checkAtMs = clock.monotonicMs() + CHECK_INTERVAL_MS;
        if ((await endReason(request)) !== null) return;
        yield* keepAlive(reading);
      }
    } catch {
      reading.lost = true;
    }
  }

  async function* follow(
    client: AgentClient,
    request: LogRequest,
    first: Upstream | null,
    gone: AbortSignal,
  ): AsyncGenerator<string> {
    const signal = AbortSignal.any([gone, stopping]);
    const reading = beginning(request, clock.monotonicMs());
    let upstream = first;
    for (;;) {
      if (upstream !== null) yield* relay(upstream, request, reading, signal);
      if (gone.aborted) return;
      const reason = await endReason(request);
      if (reason !== null) {
        yield dataFrame({ meta: 'end', reason });
        return;
      }
      if (reading.lost) yield dataFrame({ meta: 'gap', reason: 'node_lost' });
      reading.lost = false;
      yield* keepAlive(reading);
      await clock.sleep(reading.retryMs, signal).catch(() => undefined);
      reading.retryMs = Math.min(reading.retryMs * 2, LAST_RETRY_MS);
      upstream = await client
        .podLogs(request.podId, { ...reading.at, follow: true }, signal)
        .catch(() => null);
    }
  }

  async function* readOnce(
    request: LogRequest,
    upstream: Upstream | null,
    gone: AbortSignal,
  ): AsyncGenerator<string> {
    const reading = beginning(request, clock.monotonicMs());
    if (upstream !== null) yield* relay(upstream, request, reading, gone);
    yield dataFrame({ meta: 'end', reason: reading.lost ? 'node_lost' : 'complete' });
  }

  return {
    /** Throws 404, 403, or 502 when the node does not answer and nothing is followed. */
    async open(request: LogRequest, gone: AbortSignal): Promise<AsyncGenerator<string>> {
      const pod = await requireReadable(db, request);
      const client = agents.clientOf(pod.executor_id);
      const isFollowing = request.query.follow;
      const upstream = await client
        .podLogs(pod.id, { ...positionOf(request), follow: isFollowing }, gone)
        .catch((error: unknown) => {
          if (!(error instanceof ApiError)) throw error;
          if (error.code === 'rate_limited') throw tooManyReaders(error);
          // A pod that is not on its node yet has no log; who follows waits for a lost node.
          if (error.status === 404 || isFollowing) return null;
          throw error;
        });
      return isFollowing
        ? follow(client, request, upstream, gone)
        : readOnce(request, upstream, gone);
    },
  };
}

/** The node's own refusal, with the header that it lost on the way. */
function tooManyReaders({ message }: ApiError): ApiError {
  return new ApiError('rate_limited', message, {
    headers: { 'Retry-After': RETRY_AFTER_SECONDS },
    hint: 'End another stream of this pod, or retry later.',
  });
}

function beginning(request: LogRequest, nowMs: number): Reading {
  return {
    at: positionOf(request),
    retryMs: FIRST_RETRY_MS,
    checkAtMs: nowMs + CHECK_INTERVAL_MS,
    keepAliveAtMs: nowMs + KEEP_ALIVE_INTERVAL_MS,
    lost: false,
  };
}

async function requireReadable(db: Database, request: LogRequest): Promise<Pod> {
  const pod = await findPod(db, request.podId);
  if (pod === undefined || pod.ended_at !== null) {
    throw new ApiError('pod_not_found', `There is no pod ${request.podId}`);
  }
  if (pod.account_id === request.accountId) return pod;
  throw new ApiError('forbidden', 'This pod belongs to another account');
}

/** A place in the log wins over a count of lines. Agents take a frame id or milliseconds. */
function positionOf({ query, lastEventId }: LogRequest): Position {
  const since = lastEventId ?? query.since;
  if (since === undefined) return { tail: query.tail };
  const atMs = parseIsoTime(since);
  return { tail: MAX_TAIL, since: atMs === null ? since : String(atMs) };
}
