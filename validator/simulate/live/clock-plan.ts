/** Decides how far the clock of a simulated marketplace runs next. Pure. Times are milliseconds since the epoch. */

export type ClockMode = {
  /** Simulated seconds per second; null: the clock is paused. */
  speed: number | null;
  /** Time at which the present advance ends; null: there is none. */
  targetMs: number | null;
};

/** `running` and `paused` describe what the clock does after an advance. */
export type ClockStatus = 'paused' | 'running' | 'advancing';

export type Moment = {
  /** Simulated time. */
  nowMs: number;
  /** Real time since the last step. */
  elapsedMs: number;
  /** False: no process of the central API runs. */
  isReachable: boolean;
};

export const PAUSED: ClockMode = { speed: null, targetMs: null };

/** Real time that one step catches up with. A market that is too large for its speed therefore runs more slowly. */
const MAX_STEP_MS = 1_000;
/** Longest simulated step while the central API is down. The step ends when the API is back. */
const OUTAGE_STEP_MS = 3_600_000;

/**
 * Returns the time until which timers run. The clock also runs while the central API is down, because no request
 * could continue it.
 */
export function endOfStep(
  { speed, targetMs }: ClockMode,
  { nowMs, elapsedMs, isReachable }: Moment,
): number {
  if (targetMs !== null) return Math.max(nowMs, targetMs);
  if (!isReachable) return nowMs + OUTAGE_STEP_MS;
  if (speed === null) return nowMs;
  return nowMs + Math.floor(Math.min(elapsedMs, MAX_STEP_MS) * speed);
}

/** Returns the mode after a step that ended at `nowMs`: a reached advance ends. */
export function afterStep(mode: ClockMode, nowMs: number): ClockMode {
  const hasArrived = mode.targetMs !== null && nowMs >= mode.targetMs;
  return hasArrived ? { ...mode, targetMs: null } : mode;
}

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;

/** Explains the time at the end of an advance before or during which faults moved the wall clock by `jumpMs`; null for 0. */
export function noteOf(jumpMs: number): string | null {
  if (jumpMs === 0) return null;
  const ms = Math.abs(jumpMs);
  const length = ms % MINUTE_MS === 0 ? `${ms / MINUTE_MS} min` : `${ms / SECOND_MS} s`;
  const [way, difference] = jumpMs < 0 ? ['back', 'less'] : ['forward', 'more'];
  return (
    `A fault set the wall clock ${way} by ${length}. An advance still has its full length, so the clock shows ${length} ` +
    `${difference} at its end than the time before the fault plus that length.`
  );
}

export function statusOf(
  { speed, targetMs }: ClockMode,
  { isReachable }: Pick<Moment, 'isReachable'>,
): ClockStatus {
  if (targetMs !== null || !isReachable) return 'advancing';
  return speed === null ? 'paused' : 'running';
}
