import { useSyncExternalStore } from 'react';
import { FailureNotice } from '../parts/failure-notice.tsx';
import type { LogFeed } from './log-feed.ts';
import type { LogStreamState } from './log-stream.ts';

type StatusProps = {
  feed: LogFeed;
  /** Names of the pods, in the order of the streams. */
  podNames: readonly string[];
  /** Begins again, after a failure. */
  onRetry: () => void;
};

/** State of the view, with the actions that the reader has. */
export function LogStatus({ feed, podNames, onRetry }: StatusProps) {
  const { streams, isFollowing } = useSyncExternalStore(feed.subscribe, feed.get);
  return (
    <div className="log-status">
      {streams.map((stream, source) => (
        <StreamStatus
          key={podNames[source]}
          stream={stream}
          pod={podNames.length > 1 ? (podNames[source] ?? null) : null}
          onRetry={onRetry}
        />
      ))}
      {isFollowing ? null : <Paused feed={feed} />}
    </div>
  );
}

type StreamProps = { stream: LogStreamState; pod: string | null; onRetry: () => void };

function StreamStatus({ stream, pod, onRetry }: StreamProps) {
  if (stream.name === 'failed') {
    return <FailureNotice error={stream.failure} retry={onRetry} />;
  }
  return (
    <span role="status">
      {pod === null ? null : `${pod}: `}
      {textOf(stream)}
    </span>
  );
}

function textOf(stream: LogStreamState): string {
  switch (stream.name) {
    case 'connecting':
      return 'Connecting …';
    case 'following':
      return 'Connected.';
    case 'waiting':
      return `${stream.failure?.message ?? 'The connection was lost'}. The view connects again, and continues after the last line.`;
    case 'held':
      return 'New lines wait in the log of the pod, until you follow it again.';
    case 'ended':
      return END_TEXTS[stream.reason] ?? 'The log has ended.';
    default:
      return '';
  }
}

const END_TEXTS: Readonly<Record<string, string>> = {
  pod_deleted: 'The pod was deleted. Its log has ended.',
  credential_revoked: 'Your session has ended. Log in again to follow the log.',
};

/** Shown while the view does not follow the log. */
function Paused({ feed }: { feed: LogFeed }) {
  useSyncExternalStore(feed.buffer.subscribe, feed.buffer.version);
  const { streams, newFrom } = feed.get();
  const isHeld = streams.some(({ name }) => name === 'held');
  const count = feed.buffer.end() - newFrom;
  return (
    <span className="row">
      <strong>Paused{count > 0 ? ` · ${count.toLocaleString('en-US')} new lines` : ''}</strong>
      <button type="button" className="primary" onClick={feed.follow}>
        Follow
      </button>
      {isHeld ? (
        <button type="button" onClick={feed.skipToNewest}>
          Skip to the newest lines
        </button>
      ) : null}
    </span>
  );
}

/** Above the lines: what has left the view, and how to read it again. */
export function LogCutNotice({ feed, hasOnePod }: { feed: LogFeed; hasOnePod: boolean }) {
  useSyncExternalStore(feed.buffer.subscribe, feed.buffer.version);
  const { history } = useSyncExternalStore(feed.subscribe, feed.get);
  const gone = feed.buffer.cutEntries();
  if (gone === 0) return null;
  return (
    <div className="log-cut">
      <span>{gone.toLocaleString('en-US')} earlier lines have left the view.</span>{' '}
      {hasOnePod ? (
        <button
          type="button"
          className="quiet"
          disabled={history === 'loading'}
          onClick={() => void feed.loadEarlier()}
        >
          {history === 'loading' ? 'Loading …' : 'Load earlier lines'}
        </button>
      ) : (
        'Open the log of one pod to read them.'
      )}
      {typeof history === 'string' ? null : <FailureNotice error={history} />}
    </div>
  );
}
