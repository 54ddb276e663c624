/** Bounds of the prices of providers, relative to the first price of a host. Pure. */

/** Smallest and largest price relative to the first: no strategy leaves this range. */
export const FLOOR_SHARE = 0.3;
export const CEILING_SHARE = 2;
const CENTS = 100;

/** Returns the price in USD, rounded to cents. */
export const inCents = (usd: number): number => Math.round(usd * CENTS) / CENTS;

/** Returns the price that a strategy wants, within the bounds. Prices are in USD. */
export const boundedPrice = (wanted: number, first: number): number =>
  inCents(Math.min(Math.max(wanted, first * FLOOR_SHARE), first * CEILING_SHARE));

/** Returns the bounds of a host's prices in USD, as prices reach them. */
export const boundsOf = (first: number): { floor: number; ceiling: number } => ({
  floor: boundedPrice(0, first),
  ceiling: boundedPrice(Number.POSITIVE_INFINITY, first),
});
