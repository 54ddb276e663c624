/** What makes a notice period (specification, Provider portal operations, rule 2; marketplace reference 1.7). Pure. */

import { parseIsoTime } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { SetNotice } from './notice.schemas.ts';

const HOUR_MS = 3_600_000;
const MAINTENANCE_LEAD_HOURS = 24;
const REMOVAL_LEAD_HOURS = 48;
const MAX_LEAD_DAYS = 365;
const DAY_MS = 24 * HOUR_MS;
const MIN_MINUTES = 1;
const MAX_MINUTES = 60;
const MINUTE_MS = 60_000;

const OFFSET = /(?:Z|[+-]\d{2}:\d{2})$/;

export type NoticeWish = {
  startAtMs: number;
  startText: string;
  /** Null: the node goes for good. */
  minutes: number | null;
  reason: string | null;
};

/** Throws 400 for what makes none. */
export function noticeWish(body: SetNotice, nowMs: number): NoticeWish {
  const { startText, permanent, reason = null } = body;
  if (startText === undefined) throw invalid('starting_at is missing');
  const startAtMs = OFFSET.test(startText) ? parseIsoTime(startText) : null;
  if (startAtMs === null) {
    throw invalid('starting_at is no ISO 8601 time with Z or an offset from UTC');
  }
  const minutes = permanent ? null : (body.minutes ?? null);
  if ((body.minutes === undefined) === !permanent) {
    throw invalid('Exactly one of period_in_minute and permanent_removal has to be given');
  }
  if (minutes !== null && (minutes < MIN_MINUTES || minutes > MAX_MINUTES)) {
    throw invalid(`period_in_minute lies between ${MIN_MINUTES} and ${MAX_MINUTES}`);
  }
  const leadHours = permanent ? REMOVAL_LEAD_HOURS : MAINTENANCE_LEAD_HOURS;
  if (startAtMs - nowMs < leadHours * HOUR_MS) {
    const what = permanent ? 'A removal' : 'A maintenance';
    throw invalid(`${what} is announced at least ${leadHours} hours ahead`);
  }
  if (startAtMs - nowMs > MAX_LEAD_DAYS * DAY_MS) {
    throw invalid(`A notice period begins within ${MAX_LEAD_DAYS} days`);
  }
  return { startAtMs, startText, minutes, reason };
}

/** When it is over; the removal of a node has no end but its start. */
export function noticeEndMs({ start_at, minutes }: { start_at: number; minutes: number | null }) {
  return start_at + (minutes ?? 0) * MINUTE_MS;
}

function invalid(message: string): ApiError {
  return new ApiError('bad_request', message, {
    hint: 'Give starting_at with Z or an offset, and either period_in_minute (1-60) or permanent_removal: true.',
  });
}
