/** Tables of the ledger and of the money that enters, leaves and moves. All amounts are in micro-dollars. */
import type { Generated } from 'kysely';
import type { Flag, Stamped } from './platform.ts';

/** One row per account of the chart that was ever posted to: what its transfers add up to. */
export type LedgerAccountsTable = {
  /** As in the chart: `user:…`, `platform:fee`. */
  id: string;
  debits_posted: number;
  credits_posted: number;
  /** Of holds that are neither posted nor voided. */
  debits_pending: number;
};

/** Transfers that happened together, and why; never changed. */
export type LedgerGroupsTable = {
  id: Generated<number>;
  cause_type: string;
  cause_id: string;
  /** Whether no other group may have this cause. */
  is_once: Flag;
  /** `system`, `session`, `provider`, or `api_key:` with its id. */
  actor: string;
  request_id: string | null;
  at_ms: number;
};

export type TransferKind = 'direct' | 'pending' | 'post' | 'void';

/** Never changed, and numbered in the order in which each account saw them. */
export type TransfersTable = {
  seq: Generated<number>;
  group_id: number;
  debit_id: string;
  credit_id: string;
  amount_uusd: number;
  /** `post` and `void` end the pending transfer that `pending_seq` names; each has one such end. */
  kind: TransferKind;
  pending_seq: number | null;
};

/** An account's own thresholds; null: the default. */
export type LowBalanceThresholdsTable = Stamped & {
  account_id: string;
  id: string;
  threshold_uusd: number | null;
  runway_minutes: number | null;
};

/** What an account was told of and has not recovered from; without a row: nothing. */
export type LowBalanceMarksTable = {
  account_id: string;
  told_of_amount: Flag;
  told_of_runway: Flag;
  updated_at: number;
};

export type AutoTopUpsTable = Stamped & {
  account_id: string;
  id: string;
  enabled: Flag;
  threshold_uusd: number;
  amount_uusd: number;
  /** Of a calendar month, UTC; null: none. */
  monthly_limit_uusd: number | null;
  payment_method_id: string | null;
  status: 'idle' | 'charging' | 'failed' | 'suspended';
  /** In a row. */
  declines: number;
  /** No charge begins before. */
  not_before: number;
  last_attempt_at: number | null;
  last_error: string | null;
};

/** One row per charge; its id is the idempotency key at the processor. */
export type TopUpsTable = Stamped & {
  id: string;
  account_id: string;
  processor: string;
  /** The processor's; unique. Null until it is known. */
  external_id: string | null;
  payment_method_id: string;
  amount_uusd: number;
  /** Of it, what went back to the payer: by refunds, and by a dispute. */
  refunded_uusd: Generated<number>;
  disputed_uusd: Generated<number>;
  state: 'charging' | 'pending' | 'succeeded' | 'declined' | 'unanswered';
  attempts: number;
  /** When the processor is asked next. */
  due_at: number;
  last_error: string | null;
};

/** The books of the simulated payment processor, which is no part of the marketplace. */
export type SimulatedChargesTable = {
  charge_key: string;
  external_id: string;
  payment_method_id: string;
  amount_uusd: number;
  created_at: number;
  /** When its payer disputed it. */
  disputed_at: number | null;
};

export type CreditTransfersTable = {
  seq: Generated<number>;
  id: string;
  sender_id: string;
  recipient_id: string;
  amount_uusd: number;
  note: string | null;
  /** Balances right after it. */
  sender_after_uusd: number;
  recipient_after_uusd: number;
  created_at: number;
};

/** One row per payout; its id is the key under which the processor is asked. Each party has one that is open at most. */
export type PayoutsTable = Stamped & {
  id: string;
  /** Its account of the ledger: `provider:…` or `referral:…`. */
  party: string;
  method: 'hotkey' | 'crypto' | 'balance';
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
  state: 'requested' | 'pending' | 'paid' | 'voided';
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

export type MoneyTables = {
  ledger_accounts: LedgerAccountsTable;
  ledger_groups: LedgerGroupsTable;
  transfers: TransfersTable;
  low_balance_thresholds: LowBalanceThresholdsTable;
  low_balance_marks: LowBalanceMarksTable;
  auto_topups: AutoTopUpsTable;
  topups: TopUpsTable;
  simulated_charges: SimulatedChargesTable;
  credit_transfers: CreditTransfersTable;
  payouts: PayoutsTable;
  simulated_payouts: SimulatedPayoutsTable;
  referrals: ReferralsTable;
};
