/** States of a payout, and how much can be paid out; state diagram in ../README.md. Pure. */
import { startOfDay } from '#shared/runtime/clock.ts';

/**
 * `hotkey`: to a provider's key; `crypto`: to an address that the account set; `balance`: to the account's credit;
 * `stripe_connect`: to the account's payout account at the payment processor.
 */
export const PAYOUT_METHODS = ['hotkey', 'crypto', 'balance', 'stripe_connect'] as const;
export type PayoutMethod = (typeof PAYOUT_METHODS)[number];

/** `requested`: held, not answered yet; `pending`: the processor works on it; `voided`: declined, hold released. */
export const PAYOUT_STATES = ['requested', 'pending', 'paid', 'voided'] as const;
export type PayoutState = (typeof PAYOUT_STATES)[number];

/** States of open payouts; a party has at most one. */
export const OPEN_STATES = ['requested', 'pending'] as const satisfies readonly PayoutState[];

/** States from which each state can be reached. A declined payout that was paid after all is still booked. */
export const REACHED_FROM: Readonly<Record<PayoutState, readonly PayoutState[]>> = {
  requested: [],
  pending: ['requested'],
  paid: ['requested', 'pending', 'voided'],
  voided: ['requested', 'pending'],
};

/** Smallest payout of each method, in micro-dollars. */
export const MINIMUM_UUSD: Readonly<Record<PayoutMethod, number>> = {
  hotkey: 10_000_000,
  crypto: 10_000_000,
  balance: 10_000,
  stripe_connect: 10_000_000,
};

const HOUR_MS = 3_600_000;
/** Latest period, whose earnings may still be refunded because of a provider's fault (metering/provider-fault.ts). */
const REFUNDABLE_MS = 24 * HOUR_MS;

/** Start of the first day (UTC) that cannot be paid out yet. Earlier earnings cannot be refunded any more. */
export function payableBefore(nowMs: number): number {
  return startOfDay(nowMs - REFUNDABLE_MS);
}

/** Micro-dollars that can be paid out now: the balance minus holds and recent earnings (`withheld`). Never below 0. */
export function payable(has: { balance: number; pending: number; withheld: number }): number {
  return Math.max(0, has.balance - has.pending - Math.max(0, has.withheld));
}
