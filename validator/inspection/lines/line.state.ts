/** State of an executor's line after a measurement, and when the next one is due. Pure. */
import type { LineRow } from '../../store/tables.ts';
import type { LineSample } from './measure-line.ts';

/** Weight of a new measurement in the moving mean. */
const NEW_SHARE = 0.3;
/** Pause after a failed measurement. */
const RETRY_MS = 5 * 60_000;
/** Waits longer than this multiple of the interval mean that the clock was set back. */
const MAX_WAIT_FACTOR = 2;

/** State of a line that was never tried. */
export function unmeasuredLine(executorId: string): LineRow {
  return {
    executor_id: executorId,
    tried_ms: 0,
    measured_ms: null,
    told_ms: null,
    samples: 0,
    down_kbit: 0,
    up_kbit: 0,
    last_down_kbit: 0,
    last_up_kbit: 0,
    false_stream: null,
    refusals: 0,
  };
}

/** State after an attempt at `nowMs`. A failed attempt does not change the speeds. */
export function nextLine(before: LineRow, sample: LineSample, nowMs: number): LineRow {
  const tried = { ...before, tried_ms: nowMs };
  if (sample.status === 'not_measured') return tried;
  if (sample.status === 'refused') return { ...tried, refusals: before.refusals + 1 };
  const found = { ...tried, refusals: 0, measured_ms: nowMs, false_stream: sample.falseStream };
  // A stream with wrong content has no meaningful speed.
  if (sample.falseStream !== null) return found;
  const { downKbit, upKbit } = sample;
  return {
    ...found,
    samples: before.samples + 1,
    down_kbit: averaged(before.down_kbit, downKbit, before.samples),
    up_kbit: averaged(before.up_kbit, upKbit, before.samples),
    last_down_kbit: downKbit,
    last_up_kbit: upKbit,
  };
}

/** Returns true for a low first sample, which may be accidental. Of two samples the faster counts, per direction. */
export function needsSecondSample(before: LineRow, sample: LineSample, lowKbit: number): boolean {
  if (sample.status !== 'measured' || sample.falseStream !== null) return false;
  return before.samples === 0 && Math.min(sample.downKbit, sample.upKbit) < lowKbit;
}

/** The better of two samples per direction. */
export function betterOf(first: LineSample, second: LineSample): LineSample {
  if (first.status !== 'measured' || second.status !== 'measured') return first;
  return {
    ...second,
    downKbit: Math.max(first.downKbit, second.downKbit),
    upKbit: Math.max(first.upKbit, second.upKbit),
  };
}

export function isDue(line: LineRow, nowMs: number, intervalMs: number): boolean {
  const isFresh =
    line.measured_ms === line.tried_ms && line.false_stream === null && line.tried_ms !== 0;
  const waitMs = isFresh ? intervalMs : Math.min(RETRY_MS, intervalMs);
  const passedMs = nowMs - line.tried_ms;
  return passedMs >= waitMs || passedMs < -waitMs * MAX_WAIT_FACTOR;
}

function averaged(before: number, sample: number, samples: number): number {
  return samples === 0 ? sample : Math.round(before + (sample - before) * NEW_SHARE);
}
