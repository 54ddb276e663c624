import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from 'react';
import type { Client } from '../api/client.ts';
import { openPodSocket } from '../api/pod-socket.ts';
import { after, sleep } from '../browser/clock.ts';
import { beforeNextFrame } from '../browser/frame.ts';
import { openSocket } from '../browser/socket.ts';
import { CopyButton } from '../parts/copy-button.tsx';
import { useClient, useSession } from '../session/session.tsx';
import type { LogCut } from './log-buffer.ts';
import { fileLine, LogDownload } from './log-download.tsx';
import { createLogFeed, type LogFeed } from './log-feed.ts';
import type { LogEntry } from './log-lines.ts';
import { readCut } from './log-page.ts';
import { LogSearchBar } from './log-search-bar.tsx';
import type { LogSettings, Output } from './log-settings.tsx';
import type { LogStart } from './log-start.ts';
import { LogCutNotice, LogStatus } from './log-status.tsx';
import { LogView } from './log-view.tsx';
import { useSearch } from './use-search.tsx';

export type LogPod = { id: string; name: string };

type LogPaneProps = {
  /** One pod, or several whose lines are ordered by time. A change needs another key. */
  pods: readonly LogPod[];
  start: LogStart;
  settings: LogSettings;
  onRetry: () => void;
};

/** A log with its search and its actions. */
export function LogPane({ pods, start, settings, onRetry }: LogPaneProps) {
  const feed = useFeed(pods, start);
  const [text, setText] = useState('');
  const [matchCase, setMatchCase] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  const term = useMemo(() => (text === '' ? null : { text, matchCase }), [text, matchCase]);
  const isShown = FILTERS[settings.output];
  const search = useSearch(feed, term, isShown);
  const names = pods.map(({ name }) => name);
  const [onlyPod] = pods;

  const onKeyDown = (event: KeyboardEvent) => {
    const isFind = event.key.toLowerCase() === 'f' && (event.ctrlKey || event.metaKey);
    if (isFind) field.current?.focus();
    else if (event.key === 'F3') search.go(event.shiftKey ? -1 : 1);
    else return;
    event.preventDefault();
  };
  return (
    // The keys work in every part of the pane.
    <fieldset className="log-pane" aria-label={`Log of ${names.join(', ')}`} onKeyDown={onKeyDown}>
      <LogSearchBar
        field={field}
        text={text}
        matchCase={matchCase}
        onText={setText}
        onMatchCase={setMatchCase}
        search={search}
      />
      <LogCutNotice feed={feed} hasOnePod={pods.length === 1} />
      <LogView
        feed={feed}
        label={`Lines of ${names.join(', ')}`}
        times={settings.times}
        isWrapped={settings.isWrapped}
        isShown={isShown}
        podNames={pods.length > 1 ? names : null}
        term={term}
        hit={search.hit}
      />
      <LogStatus feed={feed} podNames={names} onRetry={onRetry} />
      <div className="row">
        <CopyButton
          text={() => feed.buffer.text((entry) => (isShown(entry) ? fileLine(entry) : null))}
          label="Copy all lines"
          fallback={
            pods.length === 1
              ? 'No clipboard: use Download'
              : 'No clipboard: open the log of one pod to download it'
          }
        />
        {pods.length === 1 && onlyPod !== undefined ? (
          <LogDownload pod={onlyPod} start={start} />
        ) : null}
        <button type="button" onClick={feed.clear}>
          Clear the view
        </button>
      </div>
    </fieldset>
  );
}

/** Marks are always shown, because they report missing lines. */
const FILTERS: Readonly<Record<Output, (entry: LogEntry) => boolean>> = {
  all: () => true,
  stdout: (entry) => entry.kind === 'mark' || !entry.isError,
  stderr: (entry) => entry.kind === 'mark' || entry.isError,
};

/** Follows the logs while the pane is shown. A new session continues after the last lines. */
function useFeed(pods: readonly LogPod[], start: LogStart): LogFeed {
  const client = useClient();
  const { session } = useSession();
  const [feed] = useState(() => createFeed(client, pods, start));
  const token = session?.token;
  useEffect(() => {
    if (token === undefined) return;
    const gone = new AbortController();
    void feed.run(gone.signal);
    return () => gone.abort();
  }, [feed, token]);
  return feed;
}

function createFeed(client: Client, pods: readonly LogPod[], start: LogStart): LogFeed {
  const ports = {
    soon: beforeNextFrame,
    after,
    sleep,
    open: (podId: string, from: LogStart, signal: AbortSignal) =>
      openPodSocket({ client, openSocket }, podId, 'logs', { ...from, follow: true }, signal),
    readCut: (podId: string, cut: LogCut, signal: AbortSignal) =>
      readCut(client, podId, cut, signal),
  };
  const ids = pods.map(({ id }) => id);
  return createLogFeed(ports, ids, start);
}
