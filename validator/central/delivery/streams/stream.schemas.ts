/** Parameters and responses of streams, terminals and stream tickets. */
import { z } from 'zod';
import { TerminalQuery } from '#shared/api/agent/terminal.ts';
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

export const EventStreamQuery = z.object({
  since: optional(FeedPosition).describe('Only events after this; only new events when absent.'),
  pod_id: optional(Uuid),
  ticket: z
    .string()
    .max(100)
    .optional()
    .describe('Instead of a credential: from POST /users/me/stream-ticket.'),
});
export type EventStreamQuery = z.output<typeof EventStreamQuery>;

/** For browsers, which cannot set headers for a WebSocket. */
const ticket = z
  .string()
  .max(100)
  .optional()
  .describe('WebSockets only, instead of a credential: from POST /pods/{id}/stream-ticket.');

/** Default number of lines from the end of the log. */
const DEFAULT_LOG_TAIL = 100;
const MAX_LOG_TAIL = 10_000;

export const PodLogsQuery = z.object({
  tail: queryNumber(z.int().min(0).max(MAX_LOG_TAIL).default(DEFAULT_LOG_TAIL)),
  follow: z.stringbool().default(false),
  /** A frame id or an ISO time; takes precedence over `tail`. */
  since: z.string().max(100).optional(),
  /** `events`: resumable frames with ids. Default: data lines only. */
  format: z.enum(['events']).optional(),
  ticket,
});
export type PodLogsQuery = z.output<typeof PodLogsQuery>;

export const PodTerminalQuery = TerminalQuery.extend({ ticket });

export const StreamTicketResponse = z
  .object({
    ticket: z.string(),
    expires_at: z.string(),
    expires_in_seconds: z.int(),
  })
  .meta({ id: 'StreamTicketResponse' });
