/** Tables of the money ledger; all amounts in micro-dollars (README, "Money"). */
import type { Generated } from 'kysely';
import type { Flag } from './columns.ts';

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

export type LedgerTables = {
  ledger_accounts: LedgerAccountsTable;
  ledger_groups: LedgerGroupsTable;
  transfers: TransfersTable;
};
