/** Money: integer micro-dollars in the code, decimal USD on the wire. */

export const MICRO_USD_PER_USD = 1_000_000;

/** Converts USD with at most 6 decimals to micro-dollars. Throws RangeError outside the safe range. */
export function usdToMicro(usd: number): number {
  const micro = Math.round(usd * MICRO_USD_PER_USD);
  if (!Number.isSafeInteger(micro)) throw new RangeError(`${usd} USD is outside the safe range`);
  return micro;
}

/** Like `usdToMicro`, for an optional amount. */
export function microOrNull(usd: number | null | undefined): number | null {
  return usd === null || usd === undefined ? null : usdToMicro(usd);
}

/** Converts micro-dollars to USD as a JSON number with at most 6 decimals. */
export function microToUsd(micro: number): number {
  return micro / MICRO_USD_PER_USD;
}

/** Formats `$1.50`, rounded up to cents, for required amounts: the printed amount is always enough. */
export function formatUsdCeil(micro: number): string {
  return `$${(Math.ceil(micro / 10_000) / 100).toFixed(2)}`;
}

/** Formats `$1.50`, rounded down to cents, for balances: the printed amount is always available. */
export function formatUsdFloor(micro: number): string {
  return `$${(Math.floor(micro / 10_000) / 100).toFixed(2)}`;
}

/** Computes ceil(hourly rate × count × duration) exactly, in BigInt because the product can exceed 2^53. */
export function costMicroCeil(ratePerHourMicro: number, count: number, durationMs: number): number {
  const numerator = BigInt(ratePerHourMicro) * BigInt(count) * BigInt(durationMs);
  const hour = 3_600_000n;
  return Number((numerator + hour - 1n) / hour);
}
