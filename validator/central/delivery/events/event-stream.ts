/**
 * An account's events as a stream (an addition of ours, in the resumable form of contract 7 only). Every reader
 * reads the log from the database at its own pace, a page at a time: a stalled one costs a page, nothing is
 * ever dropped for it, and whoever comes back with the id of its last event gets what came after, each once.
 */
import { dataFrame } from '#shared/http/event-stream.ts';
import { requireAnyOwnPod } from '../../market/pods/pod-access.ts';
import { endFrame, eventFrame, KEEP_ALIVE, RETRY } from '../streams/resumable.ts';
import type { EventStreamQuery } from '../streams/stream.schemas.ts';
import { createStreamGuard, leaving, watched } from '../streams/stream-guard.ts';
import { createStreamSeats, EVENT_LIMITS } from '../streams/stream-limits.ts';
import type { AccountEvent } from './event.schemas.ts';
import { createEventFeeds, type FeedReader } from './event-feed.ts';
import type { EventWatchDeps } from './event-watch.ts';

export type EventStreamRequest = {
  accountId: string;
  query: EventStreamQuery;
  /** Of the last event that the client has; wins over `since`. */
  lastEventId: string | undefined;
  /** Aborts when the credential that opened the stream does not stand any more. */
  revoked: AbortSignal;
};

export type EventStreams = ReturnType<typeof createEventStreams>;

/** Opens them. */
export function createEventStreams(deps: EventWatchDeps & { stopping: AbortSignal }) {
  const { db, clock, stopping } = deps;
  const guard = createStreamGuard({ db, stopping });
  const seats = createStreamSeats(EVENT_LIMITS);
  const feeds = createEventFeeds(deps);

  async function* stream(
    reader: FeedReader,
    revoked: AbortSignal,
    gone: AbortSignal,
  ): AsyncGenerator<string> {
    const left = new AbortController();
    const signal = AbortSignal.any([gone, stopping, revoked, left.signal]);
    const endReason = () => guard.endReason({ podId: null, revoked });
    try {
      yield RETRY;
      const frames = framesOf(reader, signal);
      try {
        yield* watched(frames, { clock, signal, keepAlive: KEEP_ALIVE, endReason });
      } catch (error) {
        if (!signal.aborted) throw error;
      }
      const reason = gone.aborted ? null : await endReason();
      if (reason !== null) yield endFrame(reason);
    } finally {
      left.abort();
    }
  }

  return {
    /** Throws 429, 404 for a pod that never was the account's, or the reason of `gone`. */
    async open(request: EventStreamRequest, gone: AbortSignal): Promise<AsyncGenerator<string>> {
      const { accountId, query, lastEventId, revoked } = request;
      gone.throwIfAborted();
      const leave = seats.take(null, accountId);
      gone.addEventListener('abort', leave, { once: true });
      try {
        if (query.pod_id !== undefined) await requireAnyOwnPod(db, accountId, query.pod_id);
        const wish = { since: lastEventId ?? query.since, podId: query.pod_id };
        const reader = await feeds.open(accountId, wish);
        return leaving(stream(reader, revoked, gone), leave);
      } catch (error) {
        leave();
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
