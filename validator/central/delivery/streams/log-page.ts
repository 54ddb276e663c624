/** The existing log of a pod, read from its node in pages, so that no reader holds a connection. */
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import type { LogFrame } from '#shared/api/agent/pod.ts';
import { dataFrame } from '#shared/http/event-stream.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';

/**
 * Start of a read: a number of lines from the end (`tail`), or the position after a frame id or a time in milliseconds
 * (`since`).
 */
export type LogPosition = { tail: number; since?: string };

export type LogPage = {
  text: string;
  /** Id of the last line; null if there are no lines. */
  lastId: string | null;
  /** True if the node could not continue at the requested position. */
  gap: boolean;
  /** True if there are more lines after this page. */
  more: boolean;
};

/**
 * Maximum `tail` that agents accept. Reads from a position use it, so that `tail` cuts off no lines after the position.
 */
export const MAX_TAIL = 10_000;
/** Maximum characters of a page; the line that reaches this number is the last one. */
const PAGE_CHARS = 64 * 1024;
const PAGE_TIMEOUT_MS = 15_000;

const NOTHING: LogPage = { text: '', lastId: null, gap: false, more: false };

/** A position before the first line. */
export const BEGINNING = '0';

/**
 * Opens the node's stream at a client's position. If the node rejects the position, the position counts as unknown: a
 * `gap` follows, then the whole log. Rejects with ApiError.
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

export type LogPageRequest = {
  from: LogPosition;
  /** Maximum characters; default PAGE_CHARS. */
  maxChars?: number;
  signal: AbortSignal;
};

/** Returns an empty page for a pod that is not on its node. Rejects with ApiError, or if the node's stream breaks. */
export async function readLogPage(
  { client, clock }: { client: AgentClient; clock: Clock },
  podId: string,
  { from, maxChars = PAGE_CHARS, signal }: LogPageRequest,
): Promise<LogPage> {
  const done = new AbortController();
  const until = AbortSignal.any([clock.deadline(PAGE_TIMEOUT_MS, done.signal), signal]);
  const page = { ...NOTHING };
  try {
    const options = { ...from, follow: false };
    for await (const frame of await podLogsFrom(client, podId, options, until)) {
      if ('log' in frame) page.lastId = frame.id;
      else if (!('meta' in frame) || frame.meta === 'end') continue;
      else if (frame.meta === 'gap') page.gap = true;
      page.text += dataFrame(frame);
      if (page.text.length >= maxChars && page.lastId !== null) return { ...page, more: true };
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
