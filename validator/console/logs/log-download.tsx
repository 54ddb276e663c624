import { useEffect, useRef, useState } from 'react';
import { dateOf } from '../browser/clock.ts';
import { saveFile } from '../browser/save-file.ts';
import { nowMs } from '../browser/server-time.ts';
import { FailureNotice } from '../parts/failure-notice.tsx';
import { formatBytes } from '../parts/format.ts';
import { useClient } from '../session/session.tsx';
import type { LogEntry } from './log-lines.ts';
import { readLog } from './log-page.ts';
import type { LogStart } from './log-start.ts';

/** Upper bound of a file in characters, because the browser builds it in memory. */
const MAX_CHARS = 256 * 1024 * 1024;
const TIME_CHARS = 19;

type DownloadProps = { pod: { id: string; name: string }; start: LogStart };

/** Reads the log from the start of the view to its present end, and saves it as a file. */
export function LogDownload({ pod, start }: DownloadProps) {
  const client = useClient();
  const [chars, setChars] = useState<number | null>(null);
  const [outcome, setOutcome] = useState<string | null>(null);
  const [error, setError] = useState<unknown>(null);
  const running = useRef(new AbortController());
  useEffect(() => () => running.current.abort(), []);

  async function download(): Promise<void> {
    running.current = new AbortController();
    const { signal } = running.current;
    setError(null);
    setOutcome(null);
    setChars(0);
    const parts: string[] = [];
    let read = 0;
    try {
      for await (const entries of readLog(client, pod.id, start, signal)) {
        const text = entries.map((entry) => `${fileLine(entry)}\n`).join('');
        parts.push(text);
        read += text.length;
        setChars(read);
        if (read > MAX_CHARS) break;
      }
      saveFile(fileName(pod.name), parts);
      setOutcome(
        read > MAX_CHARS
          ? `Saved the first ${formatBytes(read)}. Choose a later start for the rest.`
          : `Saved ${formatBytes(read)}.`,
      );
    } catch (failure) {
      if (!signal.aborted) setError(failure);
    } finally {
      setChars(null);
    }
  }

  return (
    <>
      {chars === null ? (
        <button type="button" onClick={() => void download()}>
          Download
        </button>
      ) : (
        <button type="button" onClick={() => running.current.abort()}>
          Cancel the download ({formatBytes(chars)})
        </button>
      )}
      {outcome === null ? null : <span role="status">{outcome}</span>}
      {error === null ? null : <FailureNotice error={error} retry={() => void download()} />}
    </>
  );
}

/** Text of an entry in files and in the clipboard. */
export function fileLine(entry: LogEntry): string {
  return entry.kind === 'line' ? `${entry.at} ${entry.text}` : `--- ${entry.text}`;
}

function fileName(pod: string): string {
  const time = dateOf(nowMs()).toISOString().slice(0, TIME_CHARS).replaceAll(':', '-');
  return `${pod.replaceAll(/[^\w.-]+/g, '-')}-${time}Z.log`;
}
