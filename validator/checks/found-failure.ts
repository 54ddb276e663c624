/** Failures that a look at an idle host found: a run that leaves the look out lifts none of them. */
import { z } from 'zod';
import { Name, Text } from '#shared/api/agent/bounds.ts';
import { naiveUtc } from '#shared/runtime/clock.ts';
import type { Check, Failure, Outcome } from './check.ts';

/** In a result of a check. */
export const MAX_MEASURED_CHARS = 1_000;

export const FoundFailure = z.object({
  reason_code: Name,
  measured: z.string().max(MAX_MEASURED_CHARS),
  message: Text,
  /** Where the table’s remedy for the reason does not fit. */
  remedy: Text.nullable(),
  /** When it was first found, by the validator's clock. */
  since_ms: z.int(),
});
export type FoundFailure = z.output<typeof FoundFailure>;

export type Seen = {
  outcome: Outcome;
  /** Whether a failure was seen often enough. */
  isCounting: boolean;
  /** Whether the check was judged at all: not while a renter is there, nor after a fatal failure. */
  isJudged: boolean;
  nowMs: number;
};

/**
 * What is to be remembered of a check: the failure that counts now, or the one from before where nothing since has
 * shown that it is over. Null where nothing stands against the host. Pure.
 */
export function foundBy(
  check: Check,
  { outcome, isCounting, isJudged, nowMs }: Seen,
  before: FoundFailure | null,
): FoundFailure | null {
  if (check.whileRented || outcome.status === 'passed') return null;
  if (outcome.status === 'unknown') {
    const isLeftOut = !isJudged || (check.isTrial && outcome.isMoot !== true);
    return isLeftOut ? before : null;
  }
  if (!isCounting) return before;
  const { reasonCode, message, remedy = null } = outcome;
  const measured = outcome.measured.slice(0, MAX_MEASURED_CHARS);
  const since_ms = before?.reason_code === reasonCode ? before.since_ms : nowMs;
  return { reason_code: reasonCode, measured, message, remedy, since_ms };
}

/** One that stands still, as the outcome of a run that did not find it itself. */
export function standingOf({ since_ms, ...found }: FoundFailure): Failure {
  return {
    status: 'failed',
    reasonCode: found.reason_code,
    measured: found.measured,
    message: `${found.message} (stands since ${naiveUtc(since_ms)}Z, until a run tries that again and it passes)`,
    ...(found.remedy === null ? {} : { remedy: found.remedy }),
  };
}
