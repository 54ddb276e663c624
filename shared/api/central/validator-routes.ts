/** The interface between validator and central API. */
import { z } from 'zod';
import { Hotkey } from '../../signing/hotkey.ts';
import { Inventory } from '../agent/inventory.ts';

/** An element of the response to POST /validator/{hotkey}/executors. */
export const ExecutorToCheck = z.object({
  id: z.uuid(),
  executor_ip_address: z.string(),
  executor_ip_port: z.string(),
  uptime_in_minutes: z.int().nullable(),
  miner_hotkey: z.string(),
  gpu_type: z.string(),
  gpu_count: z.int(),
  /** GPUs in the last accepted verdict. */
  gpu_uuids: z.array(z.string()),
  rented: z.boolean(),
  /** Pods that lease its GPUs; null from a central API that does not report them. */
  pod_ids: z.array(z.uuid()).nullable().default(null),
  /** The provider's price, micro-USD per GPU and hour; null from a central API that does not report it. */
  price_uusd: z.int().min(0).nullable().default(null),
  /** Null if the central API does not report it, which counts as false. */
  collateral_deposited: z.boolean().nullable().default(null),
  /** Absent if the central API does not report it. */
  provider_banned: z.boolean().nullish(),
});
export type ExecutorToCheck = z.output<typeof ExecutorToCheck>;
export const ExecutorsToCheck = z.array(ExecutorToCheck);

export const CHECK_SEVERITIES = ['info', 'warning', 'error'] as const;
export type CheckSeverity = (typeof CHECK_SEVERITIES)[number];
export const CHECK_CATEGORIES = ['prep', 'env', 'policy', 'runtime', 'transport'] as const;
export type CheckCategory = (typeof CHECK_CATEGORIES)[number];
/** Only checks in mode `enforce` affect the verdict; the results of others are only recorded. */
export const CHECK_MODES = ['enforce', 'shadow', 'observe'] as const;
export type CheckMode = (typeof CHECK_MODES)[number];

/** The result of a check, as shown to the provider. */
export const CheckResult = z.object({
  check_id: z.string().max(64),
  passed: z.boolean(),
  reason_code: z.string().max(64).nullable(),
  measured: z.string().max(1000),
  required: z.string().max(1000),
  message: z.string().max(2000),
  remediation: z.string().max(2000),
  // Absent in results of older validators and in older rows of the database.
  mode: z.enum(CHECK_MODES).default('enforce'),
  severity: z.enum(CHECK_SEVERITIES).default('info'),
  category: z.enum(CHECK_CATEGORIES).default('env'),
  fatal: z.boolean().default(false),
});
export type CheckResult = z.output<typeof CheckResult>;

/** Returns true if this result alone prevents verification. */
export function isBlocking({
  passed,
  mode = 'enforce',
}: {
  passed: boolean;
  mode?: CheckMode;
}): boolean {
  return !passed && mode === 'enforce';
}

/** `withheld`: the checks could not be completed; the executor's state does not change. */
export const VERDICTS = ['verified', 'failed', 'withheld'] as const;

const Mbps = z.int().min(0).max(1_000_000_000);

/** Shortest round trip between the validator and the agent, and the validator's coordinates. */
export const RoundTrip = z.object({
  ms: z.number().positive().max(60_000),
  lat: z.number().min(-90).max(90),
  lon: z.number().min(-180).max(180),
});
export type RoundTrip = z.output<typeof RoundTrip>;

export const HealthReport = z.object({
  verdict: z.enum(VERDICTS),
  checked_at_ms: z.int(),
  checks: z.array(CheckResult).max(100),
  /** The agent's inventory, stored with the verdict; null if the agent did not respond. */
  inventory: Inventory.nullable(),
  /** Mean line speed from the executor's point of view; null if not measured. */
  line: z.object({ download_mbps: Mbps, upload_mbps: Mbps }).nullish(),
  /** Bounds the distance to the agent; null if the validator has no coordinates or did not measure. */
  round_trip: RoundTrip.nullish(),
});
export type HealthReport = z.output<typeof HealthReport>;

const GpuUuids = z.array(z.string().max(64)).max(64);

/** Resources for a manually requested check: exactly these GPUs and cores. A rented host gets no load test. */
export const CheckRequest = z.object({
  rental_in_progress: z.boolean(),
  /** Empty: all GPUs of the host. */
  gpu_uuids: GpuUuids,
  /** Absent: all cores of the host. */
  cpu_count: z.int().min(1).max(1_024).nullish(),
});
export type CheckRequest = z.output<typeof CheckRequest>;

/** Time limit of a requested check. Callers wait up to 300 seconds; the response must arrive earlier. */
export const CHECK_TIMEOUT_MS = 290_000;

/**
 * Without `report`, the central API runs the check and responds with its result; with it, the central API records the
 * verdict.
 */
export const ExecutorHealthCheckRequest = z
  .object({
    miner_address: z.string().max(255),
    miner_port: z.int().min(1).max(65_535),
    miner_hotkey: Hotkey,
    container_port: z.int().min(1).max(65_535),
    ...CheckRequest.shape,
    executor_id: z.uuid().nullish(),
    report: HealthReport.nullish(),
  })
  .meta({ id: 'ExecutorHealthCheckRequest' });
export const ExecutorHealthCheckResponse = z
  .object({
    success: z.boolean(),
    error: z.string().nullable(),
    details: z.record(z.string(), z.unknown()).nullable(),
    reason_code: z.string().nullable(),
  })
  .meta({ id: 'ExecutorHealthCheckResponse' });

export const REWARD_ESTIMATE_PATH = '/v1/reward-estimate';

const MAX_GPUS = 64;
const MAX_PRICE_UUSD = 1_000_000_000_000;

/** Query of the gateway's route that estimates the reward of a node that does not exist yet. */
export const RewardQuery = z.object({
  /** Full name as the driver reports it. */
  gpu_model: z.string().min(1).max(200),
  gpu_count: z.coerce.number().int().min(1).max(MAX_GPUS),
  /** Micro-USD per GPU and hour. */
  price_uusd: z.coerce.number().int().min(0).max(MAX_PRICE_UUSD),
});
export type RewardQuery = z.output<typeof RewardQuery>;

const Share = z.number().min(0).max(1);

/** Estimated shares of the validator's total reward, computed by the function that computes its weights. */
export const RewardShares = z.object({
  rented: Share,
  idle: Share,
  /** Names of the weight rules because of which the node would earn nothing; empty if it would earn. */
  obstacles: z.array(z.string().max(64)).max(20),
});
export type RewardShares = z.output<typeof RewardShares>;
