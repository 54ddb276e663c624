/** What the streams of pods take and answer (contract 7; terminal and tickets are additions of ours). */
import { z } from 'zod';
import { TerminalQuery } from '#shared/api/agent/terminal.ts';
import { parseIsoTime } from '#shared/runtime/clock.ts';
import { optional, queryNumber, Uuid } from '../../platform/wire.ts';

export const PodLogParams = z.object({ pod_id: Uuid });
export const PodStreamParams = z.object({ id: Uuid });

/** Of an account's feed: an event's id or an ISO time. */
const FeedPosition = z
  .string()
  .max(100)
  .refine(
    (text) => z.uuid().safeParse(text).success || parseIsoTime(text) !== null,
    'Neither the id of an event nor an ISO 8601 time',
  );

export const EventStreamQuery = z.object({
  since: optional(FeedPosition).describe('Only what comes after; from now on when absent.'),
  pod_id: optional(Uuid),
  ticket: z
    .string()
    .max(100)
    .optional()
    .describe('Instead of a credential: from POST /users/me/stream-ticket.'),
});
export type EventStreamQuery = z.output<typeof EventStreamQuery>;

/** For WebSockets of browsers, which cannot send headers. */
const ticket = z
  .string()
  .max(100)
  .optional()
  .describe('WebSockets only, instead of a credential: from POST /pods/{id}/stream-ticket.');

/** Lines kept back from the end of the log when nothing is asked for. */
const DEFAULT_LOG_TAIL = 100;
const MAX_LOG_TAIL = 10_000;

export const PodLogsQuery = z.object({
  tail: queryNumber(z.int().min(0).max(MAX_LOG_TAIL).default(DEFAULT_LOG_TAIL)),
  follow: z.stringbool().default(false),
  /** A frame id or an ISO time; wins over `tail`. */
  since: z.string().max(100).optional(),
  /** Frames with ids, to be resumed; data lines only when absent. */
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
