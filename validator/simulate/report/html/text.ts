/** Text of reports: numbers as people read them, and values inside HTML. Pure. */

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Returns the text for use in elements and in quoted attributes. */
export const escapeHtml = (text: string): string =>
  text.replaceAll(/[&<>"']/g, (character) => ESCAPES[character] ?? '');

const grouped = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const precise = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 3 });
const CENT_DIGITS = 2;
const cents = new Intl.NumberFormat('en-US', {
  minimumFractionDigits: CENT_DIGITS,
  maximumFractionDigits: CENT_DIGITS,
});
const tenthCents = new Intl.NumberFormat('en-US', {
  minimumFractionDigits: CENT_DIGITS + 1,
  maximumFractionDigits: CENT_DIGITS + 1,
});
/** Ticks below this amount have cents. */
const SMALL_USD = 10;

/** Returns a number with at most three significant digits below 1,000, and whole above. */
export const number = (value: number): string =>
  Math.abs(value) < 1_000 ? precise.format(value) : grouped.format(value);

/** Returns a whole number. */
export const whole = (value: number): string => grouped.format(value);

/** A negative amount that is rounded to zero has no sign. */
const money =
  (format: Intl.NumberFormat) =>
  (value: number): string => {
    const text = format.format(Math.abs(value));
    return value < 0 && /[1-9]/.test(text) ? `-$${text}` : `$${text}`;
  };

/** Returns an amount as all sentences and tables have it: with cents. */
export const usd = money(cents);

/** Returns a price per GPU and hour, whose tenths of a cent matter. */
export const gpuPrice = money(tenthCents);

/** Returns an amount for the ticks of an axis: without cents, unless it is small. */
export const tickUsd = (value: number): string =>
  Math.abs(value) < SMALL_USD && !Number.isInteger(value)
    ? usd(value)
    : `${value < 0 ? '-' : ''}$${grouped.format(Math.abs(value))}`;

/** Shares above this one have two decimals, so that they do not seem to be all. */
const NEARLY_ALL = 0.99;
const MOST = 99.99;

/** Shares below this one are errors of the computation. */
const NOTHING = 1e-9;

export function percent(share: number): string {
  if (share <= NEARLY_ALL || share >= 1) return `${points(share)} %`;
  const rounded = Math.round(share * 10_000) / 100;
  return rounded > MOST ? `more than ${MOST} %` : `${rounded} %`;
}

/** Returns the difference of two shares. */
export const percentagePoints = (share: number): string => `${points(share)} percentage points`;

/** Returns the ends of an interval of differences of shares. */
export const percentagePointsBetween = (low: number, high: number): string =>
  `${points(low)} to ${percentagePoints(high)}`;

const points = (share: number): string => number(Math.abs(share) < NOTHING ? 0 : share * 100);

/** Returns `1 rental`, `2 rentals`. */
export const counted = (count: number, noun: string): string =>
  `${grouped.format(count)} ${noun}${count === 1 ? '' : 's'}`;

const MINUTE_S = 60;
const HOUR_S = 3_600;
const DAY_S = 86_400;

/** Returns a duration in the unit that people use for it. */
export function duration(seconds: number): string {
  if (seconds < 2 * MINUTE_S) return `${number(seconds)} s`;
  if (seconds < 2 * HOUR_S) return `${number(seconds / MINUTE_S)} min`;
  if (seconds < 2 * DAY_S) return `${number(seconds / HOUR_S)} h`;
  return `${number(seconds / DAY_S)} days`;
}

const HOURS_PER_DAY = 24;

/** Returns a time of the run in hours after its start as `day 2, 06:00`. */
export function clockTime(hours: number): string {
  const minutes = Math.round(hours * 60);
  const [day, minute] = [Math.floor(minutes / 60 / HOURS_PER_DAY) + 1, minutes % 60];
  const hour = Math.floor(minutes / 60) % HOURS_PER_DAY;
  return `day ${day}, ${String(hour).padStart(2, '0')}:${String(minute).padStart(2, '0')}`;
}

/** Returns a time of the run as `day 2, 06:00 to 18:00`, with the second day only if it is another. */
export function timeRange(fromHours: number, toHours: number): string {
  const [from, to] = [clockTime(fromHours), clockTime(toHours)];
  const [day = '', time = ''] = to.split(', ');
  return `${from} to ${from.startsWith(`${day},`) ? time : to}`;
}
