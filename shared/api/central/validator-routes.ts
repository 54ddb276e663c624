/** What validator and central API say to each other (contract 11). */
import { z } from 'zod';
import { Hotkey } from '../../signing/hotkey.ts';
import { Inventory } from '../agent/inventory.ts';

/** One row of POST /validator/{hotkey}/executors. */
export const ExecutorToCheck = z.object({
  id: z.uuid(),
  executor_ip_address: z.string(),
  executor_ip_port: z.string(),
  uptime_in_minutes: z.int().nullable(),
  miner_hotkey: z.string(),
  gpu_type: z.string(),
  gpu_count: z.int(),
  /** GPUs that the last accepted verdict saw. */
  gpu_uuids: z.array(z.string()),
  rented: z.boolean(),
  /** Those that hold its GPUs; null where the central API does not tell. */
  pod_ids: z.array(z.uuid()).nullable().default(null),
  /** Micro-USD per GPU and hour that its provider asks for; null where the central API does not tell. */
  price_uusd: z.int().min(0).nullable().default(null),
  /** Null where the central API does not tell: counts as none. */
  collateral_deposited: z.boolean().nullable().default(null),
  /** Absent where the central API does not tell. */
  provider_banned: z.boolean().nullish(),
});
export type ExecutorToCheck = z.output<typeof ExecutorToCheck>;
export const ExecutorsToCheck = z.array(ExecutorToCheck);

export const CHECK_SEVERITIES = ['info', 'warning', 'error'] as const;
export type CheckSeverity = (typeof CHECK_SEVERITIES)[number];
export const CHECK_CATEGORIES = ['prep', 'env', 'policy', 'runtime', 'transport'] as const;
export type CheckCategory = (typeof CHECK_CATEGORIES)[number];
/** Only what is enforced counts; the rest is on record. */
export const CHECK_MODES = ['enforce', 'shadow', 'observe'] as const;
export type CheckMode = (typeof CHECK_MODES)[number];

/** One check's outcome, readable by the provider (marketplace reference 1.18). */
export const CheckResult = z.object({
  check_id: z.string().max(64),
  passed: z.boolean(),
  reason_code: z.string().max(64).nullable(),
  measured: z.string().max(1000),
  required: z.string().max(1000),
  message: z.string().max(2000),
  remediation: z.string().max(2000),
  // Results of older validators and rows have none of these.
  mode: z.enum(CHECK_MODES).default('enforce'),
  severity: z.enum(CHECK_SEVERITIES).default('info'),
  category: z.enum(CHECK_CATEGORIES).default('env'),
  fatal: z.boolean().default(false),
});
export type CheckResult = z.output<typeof CheckResult>;

/** Whether it alone keeps the executor from being verified. */
export function isBlocking({
  passed,
  mode = 'enforce',
}: {
  passed: boolean;
  mode?: CheckMode;
}): boolean {
  return !passed && mode === 'enforce';
}

/** `withheld`: it could not be measured, so it is no verdict and changes nothing. */
export const VERDICTS = ['verified', 'failed', 'withheld'] as const;

const Mbps = z.int().min(0).max(1_000_000_000);

export const HealthReport = z.object({
  verdict: z.enum(VERDICTS),
  checked_at_ms: z.int(),
  checks: z.array(CheckResult).max(100),
  /** What the agent said of itself, kept with the verdict; null when it did not answer. */
  inventory: Inventory.nullable(),
  /** Means of the line, megabits a second as the executor sees them; null where it was not measured. */
  line: z.object({ download_mbps: Mbps, upload_mbps: Mbps }).nullish(),
});
export type HealthReport = z.output<typeof HealthReport>;

const GpuUuids = z.array(z.string().max(64)).max(64);

/** What a check asked for by hand demands of the host: exactly these GPUs and cores, and nothing while it is rented. */
export const CheckRequest = z.object({
  rental_in_progress: z.boolean(),
  /** Those of the host when empty. */
  gpu_uuids: GpuUuids,
  /** Those of the host when absent. */
  cpu_count: z.int().min(1).max(1_024).nullish(),
});
export type CheckRequest = z.output<typeof CheckRequest>;

/** Callers wait up to 300 seconds; what they get is decided before that. */
export const CHECK_TIMEOUT_MS = 290_000;

/** Without `report` the central API has the check run now; with one the verdict is recorded. */
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

/** Query of the gateway's route. */
export const RewardQuery = z.object({
  /** Full name as drivers report it. */
  gpu_model: z.string().min(1).max(200),
  gpu_count: z.coerce.number().int().min(1).max(MAX_GPUS),
  /** Micro-USD per GPU and hour. */
  price_uusd: z.coerce.number().int().min(0).max(MAX_PRICE_UUSD),
});
export type RewardQuery = z.output<typeof RewardQuery>;

const Share = z.number().min(0).max(1);

/** Of everything that the validator's weights give away: by the same function that they are computed with. */
export const RewardShares = z.object({
  rented: Share,
  idle: Share,
  /** Why it earns nothing, in the words of the weights; empty when it does. */
  obstacles: z.array(z.string().max(64)).max(20),
});
export type RewardShares = z.output<typeof RewardShares>;
