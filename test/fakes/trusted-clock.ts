/** A clock that is never suspect. */
import type { ClockTrust } from '#shared/runtime/guarded-clock.ts';

export const TRUSTED_CLOCK: ClockTrust = {
  isSuspect: () => false,
  isStepping: () => false,
  resumedAtMs: () => Number.NEGATIVE_INFINITY,
};
