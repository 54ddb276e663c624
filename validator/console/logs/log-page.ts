/** Reads an existing part of a log, without following it: for lines that have left a view, and for files. */
import { type Client, queryOf } from '../api/client.ts';
import { eventsIn } from '../api/event-stream.ts';
import type { LogCut } from './log-buffer.ts';
import { isLater, isLine, type LogEntry, parseMessages, withTimes } from './log-lines.ts';
import type { LogStart } from './log-start.ts';

/** Entries per step, so that a long read does not stop the page. */
const STEP = 1_000;

/** Yields entries in their order until the present end of the log. Rejects with an `ApiFailure`. */
export async function* readLog(
  client: Client,
  podId: string,
  start: LogStart,
  signal: AbortSignal,
): AsyncGenerator<LogEntry[]> {
  const path = `/api/pods/${encodeURIComponent(podId)}/logs${queryOf(start)}`;
  const { body } = await client.open(path, { signal });
  if (body === null) return;
  let messages: string[] = [];
  const take = () => {
    const entries = parseMessages(messages, 0).filter((entry) => entry.kind !== 'end');
    messages = [];
    return entries;
  };
  for await (const { data } of eventsIn(body)) {
    messages.push(data);
    if (messages.length >= STEP) yield take();
  }
  yield take();
}

/** Reads entries that have left a view; only those that the node still stores. Rejects with an `ApiFailure`. */
export async function readCut(
  client: Client,
  podId: string,
  cut: LogCut,
  signal: AbortSignal,
): Promise<LogEntry[]> {
  const leaving = new AbortController();
  const ended = AbortSignal.any([signal, leaving.signal]);
  const found: LogEntry[] = [];
  for await (const entries of readLog(client, podId, { since: cut.after ?? cut.at }, ended)) {
    const end = endOf(entries, cut);
    found.push(...entries.slice(0, end ?? entries.length));
    if (end !== null || found.length > cut.entries + STEP) break;
  }
  leaving.abort();
  return withTimes(found, cut.at);
}

/** Index behind the last entry of a cut; null if it may follow later. */
function endOf(entries: readonly LogEntry[], { last }: LogCut): number | null {
  const at = entries.findIndex(
    (entry) => isLine(entry) && (entry.id === last.id || isLater(entry.at, last.at)),
  );
  const entry = entries[at];
  if (entry === undefined) return null;
  return isLine(entry) && entry.id === last.id ? at + 1 : at;
}
