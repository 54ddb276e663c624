/**
 * An account's events as a resumable stream. Every reader reads the feed from the database at its own pace, a page at a
 * time: a stalled reader holds one page, and no event is dropped. A client that resumes with the id of its last event
 * receives every later event exactly once.
 */
import { dataFrame } from '#shared/http/event-stream.ts';
import { endFrame, eventFrame, KEEP_ALIVE, RETRY } from '../streams/resumable.ts';
import type { EventStreamQuery } from '../streams/stream.schemas.ts';
import { createStreamGuard, guarded, type PodAccess, released } from '../streams/stream-guard.ts';
import { createStreamLimit, EVENT_LIMITS } from '../streams/stream-limits.ts';
import type { AccountEvent } from './event.schemas.ts';
import { createEventFeeds, type FeedReader } from './event-feed.ts';
import type { EventWatchDeps } from './event-watch.ts';

export type EventStreamRequest = {
  accountId: string;
  query: EventStreamQuery;
  /** Id of the last event that the client received; takes precedence over `since`. */
  lastEventId: string | undefined;
  /** Aborts when the credential that opened the stream is revoked or expires. */
  revoked: AbortSignal;
};

export type EventStreams = ReturnType<typeof createEventStreams>;

export function createEventStreams(
  deps: EventWatchDeps & { pods: PodAccess; stopping: AbortSignal },
) {
  const { db, clock, pods, stopping } = deps;
  const guard = createStreamGuard({ db, pods, stopping });
  const limit = createStreamLimit(EVENT_LIMITS);
  const feeds = createEventFeeds(deps);

  async function* stream(
    reader: FeedReader,
    revoked: AbortSignal,
    gone: AbortSignal,
  ): AsyncGenerator<string> {
    const signal = AbortSignal.any([gone, stopping, revoked]);
    const endReason = () => guard.endReason({ podId: null, revoked });
    yield RETRY;
    const open = (ended: AbortSignal) => framesOf(reader, AbortSignal.any([signal, ended]));
    try {
      yield* guarded(open, { clock, signal, keepAlive: KEEP_ALIVE, endReason });
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    const reason = gone.aborted ? null : await endReason();
    if (reason !== null) yield endFrame(reason);
  }

  return {
    /** Throws 429 above the limits, 404 for a pod that never belonged to the account, or the abort reason of `gone`. */
    async open(request: EventStreamRequest, gone: AbortSignal): Promise<AsyncGenerator<string>> {
      const { accountId, query, lastEventId, revoked } = request;
      gone.throwIfAborted();
      const release = limit.acquire(null, accountId);
      gone.addEventListener('abort', release, { once: true });
      try {
        if (query.pod_id !== undefined) await pods.requireAnyOwnPod(db, accountId, query.pod_id);
        const since = lastEventId ?? query.since;
        const reader = await feeds.open(accountId, { since, podId: query.pod_id });
        return released(stream(reader, revoked, gone), release);
      } catch (error) {
        release();
        throw error;
      }
    },
  };
}

async function* framesOf(reader: FeedReader, signal: AbortSignal): AsyncGenerator<string> {
  if (reader.isGap) yield eventFrame('gap', null, dataFrame({ meta: 'gap', reason: 'unknown_id' }));
  for await (const page of reader.pages(signal)) yield page.map(frameOf).join('');
}

function frameOf(event: AccountEvent): string {
  return eventFrame('event', event.id, dataFrame(event));
}
