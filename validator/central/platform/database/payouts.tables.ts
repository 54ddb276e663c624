/** Tables of what leaves the ledger; all amounts in micro-dollars (README, "Money"). */
import type { Selectable } from 'kysely';
import type { PayoutMethod, PayoutState } from '../../money/payouts/payout.state.ts';
import type { Stamped } from './columns.ts';

/** One row per payout; its id is the key under which the processor is asked. Each party has one that is open at most. */
export type PayoutsTable = Stamped & {
  id: string;
  /** Its account of the ledger: `provider:…` or `referral:…`. */
  party: string;
  method: PayoutMethod;
  /** Where it goes, as it was when it was requested. */
  address: string;
  /** Of `crypto` alone. */
  network: string | null;
  /** Null of `balance`, for which nobody is asked. */
  processor: string | null;
  /** The processor's. */
  external_id: string | null;
  amount_uusd: number;
  /** The group of the ledger that sets the amount aside; null of `balance`. */
  hold_id: string | null;
  /** It pays what was earned before. */
  covers_until_ms: number;
  state: PayoutState;
  attempts: number;
  /** When the processor is asked next. */
  due_at: number;
  last_error: string | null;
};

/** The books of the simulated processor of payouts, which is no part of the marketplace. */
export type SimulatedPayoutsTable = {
  payout_key: string;
  external_id: string;
  behaviour: string;
  amount_uusd: number;
  /** How often it was asked for. */
  asked: number;
  created_at: number;
};

/** An account that came by another one's code. */
export type ReferralsTable = {
  account_id: string;
  referrer_id: string;
  /** What it paid for use so far, granted credit and what was given back not counted. */
  paid_uusd: number;
  /** What of the fees on that its referrer was credited. */
  accrued_uusd: number;
  /** How often. */
  seq: number;
  created_at: number;
};

export type PayoutTables = {
  payouts: PayoutsTable;
  simulated_payouts: SimulatedPayoutsTable;
  referrals: ReferralsTable;
};

export type PayoutRow = Selectable<PayoutsTable>;
export type SimulatedPayout = Selectable<SimulatedPayoutsTable>;
export type ReferralRow = Selectable<ReferralsTable>;
