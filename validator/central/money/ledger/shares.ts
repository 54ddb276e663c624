/** Who gets which part of what renters pay (marketplace reference 2.3). Pure. */

const PROVIDER_PERCENT = 95n;
/** Of the fee, for whoever brought the renter. */
const REFERRAL_PERCENT = 20n;
const PERCENT = 100n;

/** The platform's part of what renters pay, of 1. */
export const PLATFORM_FEE_RATE = Number(PERCENT - PROVIDER_PERCENT) / Number(PERCENT);

/** The provider's part of everything charged so far; the fee is the rest. */
export function providerShare(totalUusd: number): number {
  return Number((BigInt(totalUusd) * PROVIDER_PERCENT) / PERCENT);
}

/** A referrer's part of the fee on everything that an account has paid so far. */
export function referralShare(paidUusd: number): number {
  return Number((BigInt(paidUusd - providerShare(paidUusd)) * REFERRAL_PERCENT) / PERCENT);
}
