/**
 * Tables of the ledger, top-ups, transfers between accounts, payouts and referrals. All amounts are in micro-dollars.
 */
import type { Generated } from 'kysely';
import type { Flag, Stamped } from './platform.ts';

/** One row per ledger account that has transfers, with the sums of its transfers. */
export type LedgerAccountsTable = {
  /** Account in the chart of accounts: `user:…`, `platform:fee`. */
  id: string;
  debits_posted: number;
  credits_posted: number;
  /** Sum of open holds. */
  debits_pending: number;
};

/** Groups of transfers that were posted together, with their cause. Rows never change. */
export type LedgerGroupsTable = {
  id: Generated<number>;
  cause_type: string;
  cause_id: string;
  /** 1 if no other group may have the same cause. */
  is_once: Flag;
  /** `system`, `session`, `provider`, or `api_key:` with its id. */
  actor: string;
  request_id: string | null;
  at_ms: number;
};

export type TransferKind = 'direct' | 'pending' | 'post' | 'void';

/** Transfers. Rows never change. `seq` is the order of an account's transfers. */
export type TransfersTable = {
  seq: Generated<number>;
  group_id: number;
  debit_id: string;
  credit_id: string;
  amount_uusd: number;
  /** `post` and `void` end the pending transfer `pending_seq`, once. */
  kind: TransferKind;
  pending_seq: number | null;
};

/** Thresholds for low-balance warnings that an account has set; null for the default. */
export type LowBalanceThresholdsTable = Stamped & {
  account_id: string;
  id: string;
  threshold_uusd: number | null;
  runway_minutes: number | null;
};

/**
 * Low-balance warnings that the account has received since its balance was last sufficient. There is no row before the
 * first warning.
 */
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
  /** Per calendar month, UTC; null for no limit. */
  monthly_limit_uusd: number | null;
  payment_method_id: string | null;
  status: 'idle' | 'charging' | 'failed' | 'suspended';
  /** Number of consecutive declined charges. */
  declines: number;
  /** Earliest time of the next charge. */
  not_before: number;
  last_attempt_at: number | null;
  last_error: string | null;
};

/** One row per charge. The id of the row is the idempotency key at the processor. */
export type TopUpsTable = Stamped & {
  id: string;
  account_id: string;
  processor: string;
  /** The charge's id at the processor; unique. Null until the id is known. */
  external_id: string | null;
  payment_method_id: string;
  amount_uusd: number;
  /** Amount returned to the payer by refunds and by a dispute. */
  refunded_uusd: Generated<number>;
  disputed_uusd: Generated<number>;
  state: 'charging' | 'pending' | 'succeeded' | 'declined' | 'unanswered';
  attempts: number;
  /** Time of the next request to the processor. */
  due_at: number;
  last_error: string | null;
};

/** Records of the simulated payment processor. */
export type SimulatedChargesTable = {
  charge_key: string;
  external_id: string;
  payment_method_id: string;
  amount_uusd: number;
  created_at: number;
  /** Time at which the payer disputed the charge. */
  disputed_at: number | null;
};

export type CreditTransfersTable = {
  seq: Generated<number>;
  id: string;
  sender_id: string;
  recipient_id: string;
  amount_uusd: number;
  note: string | null;
  /** Balances after the transfer. */
  sender_after_uusd: number;
  recipient_after_uusd: number;
  created_at: number;
};

/**
 * One row per payout. The id of the row is the idempotency key at the processor. A recipient has at most one open
 * payout.
 */
export type PayoutsTable = Stamped & {
  id: string;
  /** Recipient as a ledger account: `provider:…` or `referral:…`. */
  party: string;
  method: 'hotkey' | 'crypto' | 'balance' | 'stripe_connect';
  /** Destination at the time of the request. */
  address: string;
  /** Network of the address; set only for `crypto`. */
  network: string | null;
  /** Null for `balance`, which needs no processor. */
  processor: string | null;
  /** The payout's id at the processor. */
  external_id: string | null;
  amount_uusd: number;
  /** Id of the ledger group that holds the amount; null for `balance`. */
  hold_id: string | null;
  /** The payout covers earnings before this time. */
  covers_until_ms: number;
  state: 'requested' | 'pending' | 'paid' | 'voided';
  attempts: number;
  /** Time of the next request to the processor. */
  due_at: number;
  last_error: string | null;
};

/** Payout accounts of the simulated payment processor. `completed_at` is null until the owner has opened the page. */
export type SimulatedOnboardingsTable = { payout_account_id: string; completed_at: number | null };

/** Records of the simulated payout processor. */
export type SimulatedPayoutsTable = {
  payout_key: string;
  external_id: string;
  behaviour: string;
  amount_uusd: number;
  /** Number of requests. */
  asked: number;
  created_at: number;
};

/** An account that signed up with another account's referral code. */
export type ReferralsTable = {
  account_id: string;
  referrer_id: string;
  /** Amount that the account has paid for usage so far, without granted credit and without refunded amounts. */
  paid_uusd: number;
  /** Part of the platform's fees on `paid_uusd` that was credited to the referrer. */
  accrued_uusd: number;
  /** Number of credits to the referrer. */
  seq: number;
  created_at: number;
};

/** Months (UTC) of the ledger that are closed. Rows never change. */
export type LedgerMonthsTable = {
  /** `2026-10`. */
  month: string;
  /** Transfers of the month: `first_seq` follows the last transfer of the month before. */
  first_seq: number;
  last_seq: number;
  /** Number of transfers. */
  transfers: number;
  /** Sum of the amounts of all transfers. A text, because it may exceed the safe integer range. */
  amount_uusd: string;
  /** SHA-256 of the month's transfers as exported lines. */
  rows_hash: string;
  /** Balance hash at the end of the month. */
  balance_hash: string;
  /** SHA-256 of this entry and of the `chain_hash` of the month before. */
  chain_hash: string;
  closed_at: number;
};

/** Totals of the ledger accounts at the end of a closed month. Rows never change. */
export type LedgerMonthBalancesTable = {
  month: string;
  id: string;
  debits_posted: number;
  credits_posted: number;
  debits_pending: number;
};

/** Closed months whose transfers are in a file. The database may delete the rows that `archive.store.ts` names. */
export type LedgerArchivesTable = {
  month: string;
  /** Absolute path of the file at the time of the archiving. */
  file: string;
  first_seq: number;
  last_seq: number;
  first_group: number;
  last_group: number;
  archived_at: number;
};

export type MoneyTables = {
  ledger_months: LedgerMonthsTable;
  ledger_month_balances: LedgerMonthBalancesTable;
  ledger_archives: LedgerArchivesTable;
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
  simulated_onboardings: SimulatedOnboardingsTable;
  referrals: ReferralsTable;
};
