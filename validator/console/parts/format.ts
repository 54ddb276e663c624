/** Formats of values that pages show. Pure; times are milliseconds since the epoch. */

const CENT_DIGITS = 2;
const FINE_DIGITS = 4;
/** Amounts of the API are whole micro-dollars. */
const MICRO_DIGITS = 6;
const CENTS = usdFormat(CENT_DIGITS);
const FINE = usdFormat(FINE_DIGITS);
const MICRO = usdFormat(MICRO_DIGITS);

function usdFormat(digits: number): Intl.NumberFormat {
  return new Intl.NumberFormat('en-US', {
    style: 'currency',
    currency: 'USD',
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}

/** Returns an amount with two decimals, or with four if it has parts of a cent, so that columns of amounts align. */
export function formatUsd(usd: number): string {
  const isWhole = Number(usd.toFixed(FINE_DIGITS)) === Number(usd.toFixed(CENT_DIGITS));
  return (isWhole ? CENTS : FINE).format(usd);
}

/** Like `formatUsd`, but with six decimals if four are not exact, so that parts add up to their total. */
export function formatUsdExact(usd: number): string {
  const isFine = Number(usd.toFixed(MICRO_DIGITS)) === Number(usd.toFixed(FINE_DIGITS));
  return isFine ? formatUsd(usd) : MICRO.format(usd);
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
const STEP = 1024;

/** Returns for example `1.5 GiB`. */
export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (Math.abs(value) >= STEP && unit < UNITS.length - 1) {
    value /= STEP;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toFixed(value < 10 ? 1 : 0)} ${UNITS[unit]}`;
}

/** Returns for example `1 file` or `1,200 files`. */
export function formatCount(count: number, noun: string): string {
  return `${count.toLocaleString('en-US')} ${noun}${count === 1 ? '' : 's'}`;
}

const STEPS = [
  { name: 'd', ms: 86_400_000 },
  { name: 'h', ms: 3_600_000 },
  { name: 'min', ms: 60_000 },
  { name: 's', ms: 1_000 },
] as const;

/** Returns the two largest units, for example `2 d 3 h`. */
export function formatDuration(ms: number): string {
  const first = STEPS.findIndex((step) => ms >= step.ms);
  if (first === -1) return '0 s';
  let rest = ms;
  const parts: string[] = [];
  for (const step of STEPS.slice(first, first + 2)) {
    const count = Math.floor(rest / step.ms);
    rest -= count * step.ms;
    if (count > 0) parts.push(`${count} ${step.name}`);
  }
  return parts.join(' ');
}

/** Returns `5 min ago`, `in 2 h`, or `now` within a second. */
export function formatDistance(atMs: number, nowMs: number): string {
  const distance = nowMs - atMs;
  const [largest = ''] = formatDuration(Math.abs(distance)).match(/^\d+ \w+/) ?? [];
  if (Math.abs(distance) < 1_000) return 'now';
  return distance > 0 ? `${largest} ago` : `in ${largest}`;
}

/** Converts a name of the API, such as `REBOOT_PENDING`, to words. */
export function wordsOf(name: string): string {
  const words = name.toLowerCase().replaceAll(/[_.-]+/g, ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}
