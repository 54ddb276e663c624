/** Words for the difference between two clocks, for refusals that a person reads. */

const SECOND_MS = 1_000;
/** Units, largest first. `fromMs`: a unit is used for differences of at least this length. */
const UNITS = [
  { name: 'days', ms: 86_400_000, fromMs: 2 * 86_400_000 },
  { name: 'h', ms: 3_600_000, fromMs: 3_600_000 - 30_000 },
  { name: 'min', ms: 60_000, fromMs: 2 * 60_000 },
];

/** Formats the amount of a difference: `45 s`, `12 min`, `1 h`, `40 days`. */
export function durationText(differenceMs: number): string {
  const ms = Math.abs(differenceMs);
  const unit = UNITS.find(({ fromMs }) => ms >= fromMs);
  if (unit === undefined) return `${Math.round(ms / SECOND_MS)} s`;
  return `${Math.round(ms / unit.ms)} ${unit.name}`;
}
