/** When a pod may be made to end by itself (specification, Limits). Pure. */

import { parseIsoTime } from '#shared/runtime/clock.ts';
import { ApiError, invalidField } from '#shared/runtime/errors.ts';

const HOUR_MS = 3_600_000;
const MIN_HOURS = 1;
const MAX_HOURS = 720;

const OFFSET = /(?:Z|[+-]\d{2}:\d{2})$/;

/** Milliseconds of `text`; throws 422 for no time or one without an offset, 400 `ttl_invalid` outside 1-720 hours from now. */
export function removalTimeOf(text: string, nowMs: number): number {
  const atMs = parseIsoTime(text);
  if (atMs === null || !OFFSET.test(text)) {
    throw invalidField('body.removal_scheduled_at', 'Not an ISO 8601 time with Z or an offset');
  }
  requireHours((atMs - nowMs) / HOUR_MS);
  return atMs;
}

/** Milliseconds that are `hours` from now; throws 400 `ttl_invalid` outside 1-720. */
export function removalAfter(hours: number, nowMs: number): number {
  requireHours(hours);
  return nowMs + Math.round(hours * HOUR_MS);
}

/** Throws 400 `ttl_invalid` outside 1-720. */
export function requireHours(hours: number): void {
  if (hours >= MIN_HOURS && hours <= MAX_HOURS) return;
  throw new ApiError(
    'ttl_invalid',
    `A pod ends between ${MIN_HOURS} and ${MAX_HOURS} hours from now`,
  );
}
