/** Parameters and responses of streams, terminals and stream tickets. */

import { z } from 'zod';
import { TerminalQuery } from '#shared/api/agent/terminal.ts';
import { described } from '#shared/api/described.ts';
import { parseIsoTime } from '#shared/runtime/clock.ts';
import { optional, queryNumber, Uuid } from '../../platform/wire.ts';

export const PodLogParams = z.object({ pod_id: Uuid });
export const PodStreamParams = z.object({ id: Uuid });

/** Position in an account's feed: an event's id or an ISO time. */
const FeedPosition = z
  .string()
  .max(100)
  .refine(
    (text) => z.uuid().safeParse(text).success || parseIsoTime(text) !== null,
    'Neither the id of an event nor an ISO 8601 time',
  );

export const EventStreamQuery = z
  .object(
    described(
      {
        since: optional(FeedPosition).describe(
          'Only events after this position; only new events if absent.',
        ),
        pod_id: optional(Uuid),
        ticket: z
          .string()
          .max(100)
          .optional()
          .describe('Ticket from POST /users/me/stream-ticket, instead of a credential.'),
      },
      {
        since:
          'Id of an event or an ISO 8601 time: only later events are sent. If absent, only new events are sent.',
        pod_id: 'Only events of this pod.',
        ticket: 'Ticket from `POST /users/me/stream-ticket`, instead of a credential.',
      },
    ),
  )
  .meta({ example: { since: '2026-11-01T00:00:00Z' } });
export type EventStreamQuery = z.output<typeof EventStreamQuery>;

/** Ticket for browsers, which cannot set headers for a WebSocket. */
const ticket = z
  .string()
  .max(100)
  .optional()
  .describe(
    'Ticket from POST /pods/{id}/stream-ticket, instead of a credential. For WebSockets only.',
  );

/** Default number of lines from the end of the log. */
const DEFAULT_LOG_TAIL = 100;
const MAX_LOG_TAIL = 10_000;

export const PodLogsQuery = z
  .object(
    described(
      {
        tail: queryNumber(z.int().min(0).max(MAX_LOG_TAIL).default(DEFAULT_LOG_TAIL)),
        follow: z.stringbool().default(false),
        since: z.string().max(100).optional(),
        format: z.enum(['events']).optional(),
        ticket,
      },
      {
        tail: 'Number of lines from the end of the log, 0 to 10000.',
        follow: 'True sends new lines until the pod is deleted; false ends after the last line.',
        since:
          'Id of a frame or an ISO 8601 time: only later lines are sent, and `tail` is ignored.',
        format:
          '`events` adds ids, event names and retry times to the frames, so that a client can resume. Absent: `data:` lines only.',
        ticket:
          'Ticket from `POST /pods/{id}/stream-ticket`, instead of a credential. For WebSockets only.',
      },
    ),
  )
  .meta({ example: { tail: 20, follow: false } });
export type PodLogsQuery = z.output<typeof PodLogsQuery>;

export const PodTerminalQuery = TerminalQuery.extend({ ticket }).meta({
  example: { cols: 100, rows: 30 },
});

/** Response of the routes that send server-sent events. */
export const SERVER_SENT_EVENTS = {
  description: 'Server-sent events. The description of the operation states when the stream ends.',
  content: { 'text/event-stream': { schema: z.string() } },
};

/** Response of a route that becomes a WebSocket. */
export const WEB_SOCKET = {
  description: 'The connection becomes a WebSocket.',
  content: { 'application/octet-stream': { schema: z.string() } },
};

export const StreamTicketResponse = z
  .object(
    described(
      { ticket: z.string(), expires_at: z.string(), expires_in_seconds: z.int() },
      {
        ticket: 'Ticket for the query parameter `ticket`. The ticket can be used once.',
        expires_at: 'Time at which the ticket expires (UTC).',
        expires_in_seconds: 'Seconds until the ticket expires.',
      },
    ),
  )
  .meta({ id: 'StreamTicketResponse' });
