/** Lines of a pod's statement: one for each period, and lines that no period has. Pure. */
import { microToUsd } from '#shared/api/money.ts';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { addTime, NO_COST, rateOf, totalOf } from './cost.ts';
import type { Refund } from './settlement.store.ts';
import type { PodStatement } from './statement.schemas.ts';
import type { Meter, SegmentRow, SegmentSum } from './usage.store.ts';

/** State and cause of the line for the part of the minimum charge that exceeds the use. */
const MINIMUM = 'minimum_charge';
/** State and cause of the line that sums the periods after `MAX_LINES`. */
const FURTHER = 'further_periods';

/**
 * Returns the lines of a statement. An amount is the total at the line's end minus the total at its start, so that the
 * lines sum to the charge. One line sums the `further` periods.
 */
export function linesOf(
  meter: Meter,
  segments: readonly SegmentRow[],
  further: SegmentSum,
): PodStatement['lines'] {
  let cost = NO_COST;
  const lines = segments.map((segment) => {
    const before = cost;
    if (segment.is_billable === 1) {
      cost = addTime(cost, rateOf(meter), endOf(meter, segment) - segment.from_ms);
    }
    return {
      from: naiveUtc(segment.from_ms),
      to: naiveUtc(endOf(meter, segment)),
      state: segment.state,
      cause: segment.cause,
      gpu_count: segment.gpu_count,
      price_per_gpu: microToUsd(segment.price_uusd_per_gpu_hour),
      amount: microToUsd(cost.uusd - before.uusd),
    };
  });
  const [first] = segments;
  if (further.from_ms !== null) {
    const before = cost;
    cost = addTime(cost, rateOf(meter), further.billed_ms);
    const period = { fromMs: further.from_ms, toMs: meter.settled_to_ms };
    const uusd = cost.uusd - before.uusd;
    lines.push(extraLine(meter, period, { state: FURTHER, cause: FURTHER, uusd }));
  }
  const missing = totalOf(cost, rateOf(meter)) - cost.uusd;
  if (missing === 0 || first === undefined) return lines;
  const period = { fromMs: first.from_ms, toMs: meter.settled_to_ms };
  return [...lines, extraLine(meter, period, { state: MINIMUM, cause: MINIMUM, uusd: missing })];
}

/** Returns the line of a refund. */
export function refundLine(meter: Meter, refund: Refund): PodStatement['lines'][number] {
  const { from_ms: fromMs, to_ms: toMs, cause, amount_uusd: amount } = refund;
  return extraLine(meter, { fromMs, toMs }, { state: 'refund', cause, uusd: -amount });
}

/** Returns a line that no segment of the pod has. */
function extraLine(
  meter: Meter,
  { fromMs, toMs }: { fromMs: number; toMs: number },
  { state, cause, uusd }: { state: string; cause: string; uusd: number },
): PodStatement['lines'][number] {
  return {
    from: naiveUtc(fromMs),
    to: naiveUtc(toMs),
    state,
    cause,
    gpu_count: meter.gpu_count,
    price_per_gpu: microToUsd(meter.price_uusd_per_gpu_hour),
    amount: microToUsd(uusd),
  };
}

/** Milliseconds of these segments that are charged. */
export function billedMs(meter: Meter, segments: readonly SegmentRow[]): number {
  return segments
    .filter(({ is_billable }) => is_billable === 1)
    .reduce((sum, segment) => sum + Math.max(0, endOf(meter, segment) - segment.from_ms), 0);
}

/** Returns the end of a segment; an open segment is charged up to its last settlement. */
function endOf(meter: Meter, { to_ms, from_ms }: SegmentRow): number {
  return to_ms ?? Math.max(from_ms, meter.settled_to_ms);
}
