/**
 * Request body that announces a notice period, and its rules: maintenance lasts 1 to 60 minutes and is announced at
 * least 24 hours ahead, the permanent removal of a node at least 48 hours ahead, and both at most 365 days ahead. Pure.
 */

import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { parseIsoTime } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { displayText, optional } from '../../platform/wire.ts';

const MAX_TIME_CHARS = 64;
const MAX_REASON = 500;

const Time = z.string().max(MAX_TIME_CHARS);

/** Request body. `parseNotice` checks the rules and throws 400, because clients treat a 422 as a changed interface. */
export const SetNotice = z
  .object(
    described(
      {
        starting_at: optional(Time),
        period_in_minute: optional(z.int()),
        permanent_removal: optional(z.boolean()),
        reason: optional(displayText(MAX_REASON)),
        start: optional(Time),
        minutes: optional(z.int()),
        permanent: optional(z.boolean()),
      },
      {
        starting_at:
          'Start, ISO 8601 with `Z` or an offset: at least 24 hours ahead for maintenance, at least 48 hours for a removal, and at most 365 days ahead.',
        period_in_minute:
          'Length of the maintenance in minutes, 1 to 60. Exactly one of `period_in_minute` and `permanent_removal` is required.',
        permanent_removal:
          'True if the node leaves the marketplace for good. False is the same as absent.',
        reason: 'Reason for the renters, up to 500 characters; absent for none.',
        start: 'Another name of `starting_at`.',
        minutes: 'Another name of `period_in_minute`.',
        permanent: 'Another name of `permanent_removal`.',
      },
    ),
  )
  .meta({
    id: 'SetNotice',
    example: {
      starting_at: '2027-01-20T08:00:00+01:00',
      period_in_minute: 30,
      reason: 'new switch',
    },
  })
  .transform((body) => ({
    startText: body.starting_at ?? body.start,
    minutes: body.period_in_minute ?? body.minutes,
    // False means the same as absent.
    permanent: body.permanent_removal === true || body.permanent === true,
    reason: body.reason,
  }));
export type SetNotice = z.output<typeof SetNotice>;

const HOUR_MS = 3_600_000;
const MAINTENANCE_LEAD_HOURS = 24;
const REMOVAL_LEAD_HOURS = 48;
const MAX_LEAD_DAYS = 365;
const DAY_MS = 24 * HOUR_MS;
const MIN_MINUTES = 1;
const MAX_MINUTES = 60;
const MINUTE_MS = 60_000;

const OFFSET = /(?:Z|[+-]\d{2}:\d{2})$/;

export type ParsedNotice = {
  startAtMs: number;
  startText: string;
  /** Null for a permanent removal. */
  minutes: number | null;
  reason: string | null;
};

/** Throws 400 if the body breaks a rule. */
export function parseNotice(body: SetNotice, nowMs: number): ParsedNotice {
  const { startText, permanent, reason = null } = body;
  if (startText === undefined) throw invalid('starting_at is missing');
  const startAtMs = OFFSET.test(startText) ? parseIsoTime(startText) : null;
  if (startAtMs === null) {
    throw invalid('starting_at is not an ISO 8601 time with Z or an offset from UTC');
  }
  const minutes = permanent ? null : (body.minutes ?? null);
  if ((body.minutes === undefined) === !permanent) {
    throw invalid('Exactly one of period_in_minute and permanent_removal is required');
  }
  if (minutes !== null && (minutes < MIN_MINUTES || minutes > MAX_MINUTES)) {
    throw invalid(`period_in_minute must be between ${MIN_MINUTES} and ${MAX_MINUTES}`);
  }
  const leadHours = permanent ? REMOVAL_LEAD_HOURS : MAINTENANCE_LEAD_HOURS;
  if (startAtMs - nowMs < leadHours * HOUR_MS) {
    const subject = permanent ? 'A removal' : 'Maintenance';
    throw invalid(`${subject} must be announced at least ${leadHours} hours ahead`);
  }
  if (startAtMs - nowMs > MAX_LEAD_DAYS * DAY_MS) {
    throw invalid(`A notice period must begin within ${MAX_LEAD_DAYS} days`);
  }
  return { startAtMs, startText, minutes, reason };
}

/** Returns the end of a notice period in milliseconds; for a permanent removal, its start. */
export function noticeEndMs({ start_at, minutes }: { start_at: number; minutes: number | null }) {
  return start_at + (minutes ?? 0) * MINUTE_MS;
}

function invalid(message: string): ApiError {
  return new ApiError('bad_request', message, {
    hint: 'Send starting_at with Z or an offset, and either period_in_minute (1-60) or permanent_removal: true.',
  });
}
