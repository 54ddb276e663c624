/**
 * The resumable form of event streams. It has the same JSON as data-only streams, plus the ids, event names and retry
 * times with which an EventSource resumes.
 */
import type { FastifyRequest } from 'fastify';
import type { LogFrame } from '#shared/api/agent/pod.ts';
import { dataFrame } from '#shared/http/event-stream.ts';

/** Time that a client waits before it reconnects, as a field of the stream. */
export const RETRY = 'retry: 2000\n\n';
/** Comment that keeps the connection open; clients ignore it. */
export const KEEP_ALIVE = ': ka\n\n';
/**
 * Reason in the end frame after which clients must reconnect: another process, or this process after its restart,
 * continues the stream.
 */
const SHUTDOWN = 'server_shutdown';
/** Pattern of ids that are sent. Other ids could break out of their line and are omitted. */
const PLAIN_ID = /^[\x21-\x7e]{1,100}$/;
const MAX_ID_CHARS = 100;
/** Separates frames: JSON contains no line breaks. */
const BLANK_LINE = '\n\n';

/** Returns one frame; `data` is the JSON of the same frame in the data-only form. */
export function eventFrame(event: string, id: string | null, data: string): string {
  const idLine = id !== null && PLAIN_ID.test(id) ? `id: ${id}\n` : '';
  return `${idLine}event: ${event}\n${data}`;
}

/** Returns the last frame of a stream. */
export function endFrame(reason: string): string {
  const end = eventFrame('end', null, dataFrame({ meta: 'end', reason }));
  return reason === SHUTDOWN ? `${RETRY}${end}` : end;
}

/** Returns the request's Last-Event-ID, truncated to the maximum length of an id. */
export function lastEventIdOf({ headers }: Pick<FastifyRequest, 'headers'>): string | undefined {
  const id = headers['last-event-id'];
  return typeof id === 'string' && id !== '' ? id.slice(0, MAX_ID_CHARS) : undefined;
}

/** Returns true if the client requests the resumable form by `?format=events` or the Accept header. */
export function wantsResumable(format: 'events' | undefined, accept: string | undefined): boolean {
  return format === 'events' || (accept ?? '').split(',').some(namesProfile);
}

function namesProfile(range: string): boolean {
  const [type, ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
  if (type !== 'text/event-stream') return false;
  return parameters.some((it) => it === 'profile=resumable' || it === 'profile="resumable"');
}

/** Converts the data-only frames of a log to the resumable form. */
export async function* resumableLog(frames: AsyncIterable<string>): AsyncGenerator<string> {
  yield RETRY;
  for await (const text of frames) {
    yield text.split(BLANK_LINE).slice(0, -1).map(resumableFrame).join('');
  }
}

function resumableFrame(text: string): string {
  const frame = JSON.parse(text.slice('data: '.length)) as LogFrame;
  const data = text + BLANK_LINE;
  if ('log' in frame) return eventFrame('log', frame.id, data);
  if (!('meta' in frame)) return KEEP_ALIVE;
  if (frame.meta === 'end') return endFrame(frame.reason ?? '');
  return eventFrame(frame.meta === 'gap' ? 'gap' : 'meta', null, data);
}
