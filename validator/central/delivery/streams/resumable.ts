/**
 * The second form of an event stream (contract 7, resumable mode): the same JSON, with what an EventSource
 * needs to go on where it broke off.
 */
import type { FastifyRequest } from 'fastify';
import type { LogFrame } from '#shared/api/agent/pod.ts';
import { dataFrame } from '#shared/http/event-stream.ts';

/** How long a client waits before it connects again. */
export const RETRY = 'retry: 2000\n\n';
/** Keeps the way open; no client sees it. */
export const KEEP_ALIVE = ': ka\n\n';
/** The end that is no reason to give up: another process, or this one again, goes on. */
const SHUTDOWN = 'server_shutdown';
/** Ids are written into lines of their own: one that could break out of its line is left out. */
const PLAIN_ID = /^[\x21-\x7e]{1,100}$/;
const MAX_ID_CHARS = 100;
/** Between two frames: JSON holds no line break of its own. */
const BLANK_LINE = '\n\n';

/** One frame; `data` is what the default mode sends. */
export function eventFrame(event: string, id: string | null, data: string): string {
  const idLine = id !== null && PLAIN_ID.test(id) ? `id: ${id}\n` : '';
  return `${idLine}event: ${event}\n${data}`;
}

/** The last frame. */
export function endFrame(reason: string): string {
  const end = eventFrame('end', null, dataFrame({ meta: 'end', reason }));
  return reason === SHUTDOWN ? `${RETRY}${end}` : end;
}

/** The header by which a client goes on; what is too long for an id of ours stays unknown. */
export function lastEventIdOf({ headers }: Pick<FastifyRequest, 'headers'>): string | undefined {
  const given = headers['last-event-id'];
  return typeof given === 'string' && given !== '' ? given.slice(0, MAX_ID_CHARS) : undefined;
}

/** Whether this form is asked for, by `?format=events` or the Accept header. */
export function wantsResumable(format: 'events' | undefined, accept: string | undefined): boolean {
  return format === 'events' || (accept ?? '').split(',').some(namesProfile);
}

function namesProfile(range: string): boolean {
  const [type, ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
  if (type !== 'text/event-stream') return false;
  return parameters.some((it) => it === 'profile=resumable' || it === 'profile="resumable"');
}

/** The frames of a log, `data:` lines only, in this form. */
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
