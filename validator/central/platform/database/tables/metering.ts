/** Tables of metering: what pods used and what was charged for it. All amounts are in micro-dollars. */
import type { Flag } from './platform.ts';

/** The life of a pod from its first `running` to its end, without gap or overlap (0023-metering.ts). */
export type UsageSegmentsTable = {
  pod_id: string;
  /** 0, 1, … */
  seq: number;
  /** `seq` - 1, whose end is where this one begins; null of the first. */
  prev_seq: number | null;
  from_ms: number;
  /** Null of the one that goes on. */
  to_ms: number | null;
  state: string;
  is_billable: Flag;
  price_uusd_per_gpu_hour: number;
  gpu_count: number;
  cause: string;
  /** When its beginning was noted; null of those from before this was kept. */
  noted_ms: number | null;
};

/** One row per pod that ever ran: its present segment, and the running figures of those before it. */
export type UsageMetersTable = {
  pod_id: string;
  account_id: string;
  provider_id: string;
  executor_id: string;
  /** Locked for the pod's life. */
  price_uusd_per_gpu_hour: number;
  gpu_count: number;
  /** Of the present segment, or of the last one. */
  seq: number;
  state: string;
  /** Whether the present segment is. */
  is_billable: Flag;
  since_ms: number;
  /** Cost of the closed segments: whole micro-dollars, and 3 600 000ths of one. */
  closed_uusd: number;
  closed_rest: number;
  /** Everything charged so far, what the platform absorbed of it included. */
  charged_uusd: number;
  /** What of it the provider was credited. */
  provider_uusd: number;
  /** What of it came out of granted credit. */
  granted_uusd: number;
  /** What of it the renter did not have. */
  absorbed_uusd: number;
  /** Given back, of what was charged. */
  refunded_uusd: number;
  /** How often it was settled. */
  tick_seq: number;
  /** Metered up to here. */
  settled_to_ms: number;
  /** When a limit of the pod or the funds of its account were last lowered: money ends nothing of before (0034-changed-limits.ts). */
  changed_ms: number;
  /** What was held for it when it was rented, until its first settlement. */
  hold_id: string | null;
  /** Null while the pod has not ended. */
  ended_at: number | null;
};

/** Every settlement of a pod; never changed. */
export type BillingTicksTable = {
  pod_id: string;
  tick_seq: number;
  to_ms: number;
  /** `charged_uusd` and `provider_uusd` after it. */
  total_uusd: number;
  provider_total_uusd: number;
  /** Of the money ledger. */
  group_id: string;
};

/** What a provider earned with a pod on one day (UTC): the portal's billing. */
export type BillingPeriodsTable = {
  pod_id: string;
  /** When the day begins. */
  day_ms: number;
  provider_id: string;
  executor_id: string;
  gpu_count: number;
  from_ms: number;
  to_ms: number;
  billed_ms: number;
  gross_uusd: number;
  net_uusd: number;
  /** What was given back later, of either. */
  refunded_gross_uusd: number;
  refunded_net_uusd: number;
};

/** What was given back for a pod that its provider broke; one at most. */
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

export type MeteringTables = {
  usage_segments: UsageSegmentsTable;
  usage_meters: UsageMetersTable;
  billing_ticks: BillingTicksTable;
  billing_periods: BillingPeriodsTable;
  usage_refunds: UsageRefundsTable;
};
