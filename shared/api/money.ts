/** Money is integer micro-dollars inside and decimal USD only on the wire. */

export const MICRO_USD_PER_USD = 1_000_000;

/** USD with at most 6 decimals -> integer micro-dollars. Throws RangeError outside the safe range. */
export function usdToMicro(usd: number): number {
  const micro = Math.round(usd * MICRO_USD_PER_USD);
  if (!Number.isSafeInteger(micro)) throw new RangeError(`${usd} USD is outside the safe range`);
  return micro;
}

/** The same for an amount that may be none. */
export function microOrNull(usd: number | null | undefined): number | null {
  return usd === null || usd === undefined ? null : usdToMicro(usd);
}

/** Integer micro-dollars -> USD as a JSON number with at most 6 decimals. */
export function microToUsd(micro: number): number {
  return micro / MICRO_USD_PER_USD;
}

/** `$1.50`, for messages to people; rounded to cents, up so that a named amount is always enough. */
export function formatUsdCeil(micro: number): string {
  return `$${(Math.ceil(micro / 10_000) / 100).toFixed(2)}`;
}

/** `$1.50`, rounded down: for balances, so that none is shown that is not there. */
export function formatUsdFloor(micro: number): string {
  return `$${(Math.floor(micro / 10_000) / 100).toFixed(2)}`;
}

/** ceil(rate per hour x count x duration), exact: the products pass 2^53, hence BigInt. */
export function costMicroCeil(ratePerHourMicro: number, count: number, durationMs: number): number {
  const numerator = BigInt(ratePerHourMicro) * BigInt(count) * BigInt(durationMs);
  const hour = 3_600_000n;
  return Number((numerator + hour - 1n) / hour);
}
