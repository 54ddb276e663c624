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

/** Returns a number with at most three significant digits below 1,000, and whole above. */
export const number = (value: number): string =>
  Math.abs(value) < 1_000 ? precise.format(value) : grouped.format(value);

export const usd = (value: number): string => `${value < 0 ? '-' : ''}$${number(Math.abs(value))}`;
export const exactUsd = (value: number): string =>
  `${value < 0 ? '-' : ''}$${Math.abs(value).toFixed(2)}`;
export const percent = (share: number): string => `${number(share * 100)} %`;

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
