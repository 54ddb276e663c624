/** The time range and resolution of a request for the history of metrics. Pure. */
import { invalidField } from '#shared/runtime/errors.ts';
import { RESOLUTIONS, type Resolution } from './retained.ts';

const MS_PER_SECOND = 1_000;

export type RangeQuery = {
  /** Milliseconds since the epoch. */
  from?: number | undefined;
  to?: number | undefined;
  resolution?: Resolution | undefined;
};

/** Intervals `first` to `end` (exclusive), in units of the resolution, counted from the epoch. */
export type Range = { resolution: Resolution; first: number; end: number };

/**
 * Returns the range and resolution of a request. Without `resolution`, uses the finest resolution that is retained
 * since `from`. Without `from`, the range is the whole period retained at the resolution, or 15 minutes if neither is
 * set. Throws `validation_error` if the range is empty.
 */
export function rangeOf({ from, to, resolution }: RangeQuery, nowMs: number): Range {
  const chosen = RESOLUTIONS.find(({ seconds, retainedSeconds }) =>
    resolution === undefined
      ? from === undefined || nowMs - from <= retainedSeconds * MS_PER_SECOND
      : seconds === resolution,
  );
  const { seconds, retainedSeconds } = chosen ?? RESOLUTIONS[2];
  const unitMs = seconds * MS_PER_SECOND;
  const untilMs = Math.min(to ?? nowMs, nowMs);
  if (from !== undefined && from >= untilMs) {
    throw invalidField('query.from', 'Must be before `to`, and in the past');
  }
  const end = Math.ceil(untilMs / unitMs);
  const oldest = Math.ceil(nowMs / unitMs) - retainedSeconds / seconds;
  const first = from === undefined ? oldest : Math.max(oldest, Math.floor(from / unitMs));
  return { resolution: seconds, first: Math.min(first, end), end };
}
