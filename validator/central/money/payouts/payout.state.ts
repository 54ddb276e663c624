/** What can be paid out, and the states of a payout (marketplace reference 2.2, I16). Pure. */
import { startOfDay } from '#shared/runtime/clock.ts';

/** `hotkey`: to a provider's own key; `crypto`: to an address that an account named; `balance`: to the account's own credit. */
export const PAYOUT_METHODS = ['hotkey', 'crypto', 'balance'] as const;
export type PayoutMethod = (typeof PAYOUT_METHODS)[number];

/** `requested`: set aside, not answered yet; `pending`: the processor works on it; `voided`: declined, and free again. */
export const PAYOUT_STATES = ['requested', 'pending', 'paid', 'voided'] as const;
export type PayoutState = (typeof PAYOUT_STATES)[number];

/** Those that a party has at most one of. */
export const OPEN_STATES = ['requested', 'pending'] as const satisfies readonly PayoutState[];

/** From where each state is reached. Money that left all the same is booked, though it was declined before. */
export const REACHED_FROM: Readonly<Record<PayoutState, readonly PayoutState[]>> = {
  requested: [],
  pending: ['requested'],
  paid: ['requested', 'pending', 'voided'],
  voided: ['requested', 'pending'],
};

/** Below these micro-dollars a payout is not worth its cost. */
export const MINIMUM_UUSD: Readonly<Record<PayoutMethod, number>> = {
  hotkey: 10_000_000,
  crypto: 10_000_000,
  balance: 10_000,
};

const HOUR_MS = 3_600_000;
/** What was earned later may have to be given back, for a pod that its provider breaks (provider-fault.ts): by the provider, and by who brought the renter. */
const MAY_GO_BACK_MS = 24 * HOUR_MS;

/** The beginning of the first day (UTC) that is not paid out yet: all that was earned before stays earned. */
export function settledUntil(nowMs: number): number {
  return startOfDay(nowMs - MAY_GO_BACK_MS);
}

/** What an account of the ledger has that nobody else is promised; `withheld` was earned too lately. Never below 0. */
export function payable(has: { balance: number; pending: number; withheld: number }): number {
  return Math.max(0, has.balance - has.pending - Math.max(0, has.withheld));
}
