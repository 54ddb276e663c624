/** What is in a pod's log already, read from its node a piece at a time, so that no reader holds a connection. */
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import type { LogFrame } from '#shared/api/agent/pod.ts';
import { dataFrame } from '#shared/http/event-stream.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';

/** Where to begin: at the last lines, or after a frame id or a time in milliseconds. */
export type LogPosition = { tail: number; since?: string };

export type LogPage = {
  text: string;
  /** Of its last line; null without one. */
  lastId: string | null;
  /** The node could not join it to where it was to begin. */
  gap: boolean;
  /** There is more behind it. */
  more: boolean;
};

/** Above the agent's, so that a place in the log is never cut short by a count of lines. */
export const MAX_TAIL = 10_000;
/** Characters; the line that reaches them is the page's last. */
const PAGE_CHARS = 64 * 1024;
const PAGE_TIMEOUT_MS = 15_000;

const NOTHING: LogPage = { text: '', lastId: null, gap: false, more: false };

/** What nodes take for a place before every line. */
export const BEGINNING = '0';

/**
 * The node's stream from a place that a client names. One that cannot be a place for the node is unknown like
 * any other: a `gap`, then what is there. Rejects with ApiError.
 */
export async function podLogsFrom(
  client: AgentClient,
  podId: string,
  from: LogPosition & { follow: boolean },
  signal: AbortSignal,
): Promise<AsyncIterable<LogFrame>> {
  try {
    return await client.podLogs(podId, from, signal);
  } catch (error) {
    const isRefused = error instanceof ApiError && error.status === 422;
    if (!isRefused || from.since === undefined) throw error;
    return afterGap(await client.podLogs(podId, { ...from, since: BEGINNING }, signal));
  }
}

async function* afterGap(frames: AsyncIterable<LogFrame>): AsyncGenerator<LogFrame> {
  yield { meta: 'gap', reason: 'unknown_id' };
  yield* frames;
}

/** A pod that is not on its node (yet) has an empty log. Rejects with ApiError, or when the node breaks off. */
export async function readLogPage(
  { client, clock }: { client: AgentClient; clock: Clock },
  podId: string,
  from: LogPosition,
  signal: AbortSignal,
): Promise<LogPage> {
  const done = new AbortController();
  const until = AbortSignal.any([clock.deadline(PAGE_TIMEOUT_MS, done.signal), signal]);
  const page = { ...NOTHING };
  try {
    const wish = { ...from, follow: false };
    for await (const frame of await podLogsFrom(client, podId, wish, until)) {
      if ('log' in frame) page.lastId = frame.id;
      else if (!('meta' in frame) || frame.meta === 'end') continue;
      else if (frame.meta === 'gap') page.gap = true;
      page.text += dataFrame(frame);
      if (page.text.length >= PAGE_CHARS && page.lastId !== null) return { ...page, more: true };
    }
    until.throwIfAborted();
    return page;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return NOTHING;
    throw error;
  } finally {
    done.abort();
  }
}
