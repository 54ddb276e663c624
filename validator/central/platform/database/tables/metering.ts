/** Tables of metering: the usage of pods and the charges for it. All amounts are in micro-dollars. */
import type { Flag } from './platform.ts';

/**
 * Time of a pod from its first `running` to its end, in consecutive segments without gaps or overlaps
 * (0023-metering.ts).
 */
export type UsageSegmentsTable = {
  pod_id: string;
  /** 0, 1, … */
  seq: number;
  /** Number of the previous segment, whose end is the start of this segment; null for the first segment. */
  prev_seq: number | null;
  from_ms: number;
  /** End of the segment; null for the present segment. */
  to_ms: number | null;
  state: string;
  is_billable: Flag;
  price_uusd_per_gpu_hour: number;
  gpu_count: number;
  cause: string;
  /** Time at which the start of the segment was recorded; null for rows that are older than this column. */
  noted_ms: number | null;
};

/** One row per pod that has run: the present segment, and the totals of all segments before it. */
export type UsageMetersTable = {
  pod_id: string;
  account_id: string;
  provider_id: string;
  executor_id: string;
  /** Does not change while the pod exists. */
  price_uusd_per_gpu_hour: number;
  gpu_count: number;
  /** Number of the present segment, or of the last one. */
  seq: number;
  state: string;
  /** 1 if the present segment is billable. */
  is_billable: Flag;
  since_ms: number;
  /** Cost of the closed segments: whole micro-dollars, and the remainder in 1/3,600,000 of a micro-dollar. */
  closed_uusd: number;
  closed_rest: number;
  /** Amount charged so far, including the part that the platform paid. */
  charged_uusd: number;
  /** Part credited to the provider. */
  provider_uusd: number;
  /** Part paid from granted credit. */
  granted_uusd: number;
  /** Part of the charges that the renter could not pay and the platform paid. */
  absorbed_uusd: number;
  /** Refunded part of the charges. */
  refunded_uusd: number;
  /** Number of settlements. */
  tick_seq: number;
  /** Usage before this time has been settled. */
  settled_to_ms: number;
  /**
   * Time at which a limit of the pod, or the funds of its account, were last lowered. The lowered values do not apply
   * to usage before this time.
   */
  changed_ms: number;
  /** The rental's hold; null after the first settlement. */
  hold_id: string | null;
  /** Null until the pod ends. */
  ended_at: number | null;
};

/** Settlements of pods. Rows never change. */
export type BillingTicksTable = {
  pod_id: string;
  tick_seq: number;
  to_ms: number;
  /** Totals after the settlement, like `charged_uusd` and `provider_uusd` of the meter. */
  total_uusd: number;
  provider_total_uusd: number;
  /** Group of the settlement's transfers in the ledger. */
  group_id: string;
};

/** Earnings of a provider with a pod on one day (UTC), for the portal. */
export type BillingPeriodsTable = {
  pod_id: string;
  day_ms: number;
  provider_id: string;
  executor_id: string;
  gpu_count: number;
  from_ms: number;
  to_ms: number;
  billed_ms: number;
  gross_uusd: number;
  net_uusd: number;
  /** Parts of gross and net that were refunded after the day. */
  refunded_gross_uusd: number;
  refunded_net_uusd: number;
};

/** Refunds for pods that failed because of a fault of the provider. There is at most one per pod. */
export type UsageRefundsTable = {
  pod_id: string;
  from_ms: number;
  to_ms: number;
  amount_uusd: number;
  provider_uusd: number;
  cause: string;
  group_id: string;
  at_ms: number;
};

/** Budgets of API keys. A key without limits has no row. The row of a deleted key remains while pods of the key run. */
export type ApiKeyBudgetsTable = {
  api_key_id: string;
  account_id: string;
  /** Limit per day (UTC) and limit for the key's lifetime; null for no limit. At least one is set. */
  daily_uusd: number | null;
  total_uusd: number | null;
  /** Time at which the key's running pods use up a budget at their present cost; null for never. */
  stops_at: number | null;
};

/** Fees on paid credit for the usage of a node, less refunds and the share of a referrer (`netFee`). */
export type ExecutorFeesTable = { executor_id: string; fee_uusd: number };

export type MeteringTables = {
  executor_fees: ExecutorFeesTable;
  usage_segments: UsageSegmentsTable;
  usage_meters: UsageMetersTable;
  billing_ticks: BillingTicksTable;
  billing_periods: BillingPeriodsTable;
  usage_refunds: UsageRefundsTable;
  api_key_budgets: ApiKeyBudgetsTable;
};
