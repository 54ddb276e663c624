/** Shares of renters' payments: the provider's share, the platform fee, and the referrer's part of the fee. Pure. */

const PROVIDER_PERCENT = 95n;
/** Percentage of the platform fee that the referrer of the renter receives. */
const REFERRAL_PERCENT = 20n;
const PERCENT = 100n;

/** Platform fee as a fraction of 1. */
export const PLATFORM_FEE_RATE = Number(PERCENT - PROVIDER_PERCENT) / Number(PERCENT);

/** Provider's share of the total charged so far, rounded down. The remainder is the platform fee. */
export function providerShare(totalUusd: number): number {
  return Number((BigInt(totalUusd) * PROVIDER_PERCENT) / PERCENT);
}

/**
 * Fee on what an account has paid, less the share of a referrer, whether there is one or not: what the payer cannot get
 * back.
 */
export function netFee(paidUusd: number): number {
  return paidUusd - providerShare(paidUusd) - referralShare(paidUusd);
}

/** Referrer's share of the fee on the total that an account has paid so far, rounded down. */
export function referralShare(paidUusd: number): number {
  return Number((BigInt(paidUusd - providerShare(paidUusd)) * REFERRAL_PERCENT) / PERCENT);
}
