/** Tables of what surrounds a balance: notifications, thresholds, top-ups, transfers. */
import type { Generated, Selectable } from 'kysely';
import type { AutoTopUpStatus } from '../../money/top-ups/auto-top-up.state.ts';
import type { TopUpState } from '../../money/top-ups/top-up.state.ts';
import type { Flag, Stamped } from './columns.ts';

/** What an account wants mails about; without a row: everything. */
export type NotificationSettingsTable = Stamped & {
  account_id: string;
  id: string;
  low_balance: Flag;
  notice_period: Flag;
  pod_failed: Flag;
  scheduled_removal: Flag;
  machine_request: Flag;
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
  status: AutoTopUpStatus;
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
  state: TopUpState;
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

export type AroundBalanceTables = {
  notification_settings: NotificationSettingsTable;
  low_balance_thresholds: LowBalanceThresholdsTable;
  low_balance_marks: LowBalanceMarksTable;
  auto_topups: AutoTopUpsTable;
  topups: TopUpsTable;
  simulated_charges: SimulatedChargesTable;
  credit_transfers: CreditTransfersTable;
};

export type NotificationSettingRow = Selectable<NotificationSettingsTable>;
export type LowBalanceThresholdRow = Selectable<LowBalanceThresholdsTable>;
export type LowBalanceMarks = Selectable<LowBalanceMarksTable>;
export type AutoTopUpRow = Selectable<AutoTopUpsTable>;
export type TopUpRow = Selectable<TopUpsTable>;
export type SimulatedCharge = Selectable<SimulatedChargesTable>;
export type CreditTransfer = Selectable<CreditTransfersTable>;
