/** The interface between validator and central API. */

import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { Hotkey } from '../../signing/hotkey.ts';
import { Inventory } from '../agent/inventory.ts';

/** An element of the response to POST /validator/{hotkey}/executors. */
export const ExecutorToCheck = z.object(
  described(
    {
      id: z.uuid(),
      executor_ip_address: z.string(),
      executor_ip_port: z.string(),
      uptime_in_minutes: z.int().nullable(),
      miner_hotkey: z.string(),
      gpu_type: z.string(),
      gpu_count: z.int(),
      gpu_uuids: z.array(z.string()),
      rented: z.boolean(),
      pod_ids: z.array(z.uuid()).nullable().default(null),
      price_uusd: z.int().min(0).nullable().default(null),
      collateral_deposited: z.boolean().nullable().default(null),
      provider_banned: z.boolean().nullish(),
      paid_fees_uusd: z.int().min(0).nullish(),
      extra_incentive_eligible: z.boolean().nullish(),
      maintenance_ms: z.int().min(0).nullish(),
    },
    {
      id: 'Id of the node.',
      executor_ip_address: 'IP address of the agent.',
      executor_ip_port: 'Port of the agent, as text.',
      uptime_in_minutes:
        'Minutes for which every check has reached the node; null before it first passed, and while it is unreachable.',
      miner_hotkey: 'ss58 of the provider.',
      gpu_type: 'Full name of the GPU type that the provider stated.',
      gpu_count: 'Number of GPUs that the provider stated.',
      gpu_uuids: 'GPUs in the last accepted verdict.',
      rented: 'True if a pod uses a GPU of the node.',
      pod_ids:
        'Ids of the pods that lease its GPUs; null from a central API that does not report them.',
      price_uusd:
        "The provider's price in millionths of a USD per GPU and hour; null from a central API that does not report it.",
      collateral_deposited:
        'True if the provider deposited collateral; null if the central API does not report it, which counts as false.',
      provider_banned:
        'True if the provider is banned, or a GPU belongs to a banned provider; absent if the central API does not report it.',
      paid_fees_uusd:
        'Fees of the marketplace that renters have paid for the node so far, in millionths of a USD: without granted credit, refunds, the share of a referrer, and charges that may still be refunded; absent if the central API does not report them.',
      extra_incentive_eligible:
        'True if the provider has linked a chat account; absent if the central API does not report it.',
      maintenance_ms:
        'Start of the last announced maintenance that has begun, milliseconds since the epoch; null for none, absent if the central API does not report it.',
    },
  ),
);
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
export const CheckResult = z.object(
  described(
    {
      check_id: z.string().max(64),
      passed: z.boolean(),
      reason_code: z.string().max(64).nullable(),
      measured: z.string().max(1000),
      required: z.string().max(1000),
      message: z.string().max(2000),
      remediation: z.string().max(2000),
      mode: z.enum(CHECK_MODES).default('enforce'),
      severity: z.enum(CHECK_SEVERITIES).default('info'),
      category: z.enum(CHECK_CATEGORIES).default('env'),
      fatal: z.boolean().default(false),
    },
    {
      check_id: 'Name of the check.',
      passed: 'True if the node passed.',
      reason_code: 'Code of the failure; null for a passed check.',
      measured: 'What was measured.',
      required: 'What is required.',
      message: 'The result, as a sentence.',
      remediation: 'What to do, as a sentence.',
      mode: 'Only checks in mode `enforce` affect the verdict; the results of others are recorded.',
      severity: 'Severity of a failure.',
      category: 'Category of the check.',
      fatal: 'True if later checks were skipped because of the failure.',
    },
  ),
);
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
export const RoundTrip = z.object(
  described(
    {
      ms: z.number().positive().max(60_000),
      lat: z.number().min(-90).max(90),
      lon: z.number().min(-180).max(180),
    },
    {
      ms: 'Shortest round trip in milliseconds.',
      lat: 'Latitude of the validator in degrees.',
      lon: 'Longitude of the validator in degrees.',
    },
  ),
);
export type RoundTrip = z.output<typeof RoundTrip>;

export const HealthReport = z.object(
  described(
    {
      verdict: z.enum(VERDICTS),
      checked_at_ms: z.int(),
      checks: z.array(CheckResult).max(100),
      inventory: Inventory.nullable(),
      line: z
        .object(
          described(
            { download_mbps: Mbps, upload_mbps: Mbps },
            {
              download_mbps: 'Mean download speed of the node in Mbit/s.',
              upload_mbps: 'Mean upload speed of the node in Mbit/s.',
            },
          ),
        )
        .nullish(),
      round_trip: RoundTrip.nullish(),
    },
    {
      verdict:
        "`verified`, `failed`, or `withheld` if the checks could not be completed, which leaves the node's state unchanged.",
      checked_at_ms: 'Time of the check in milliseconds since the epoch.',
      checks: 'Results of the checks.',
      inventory:
        'Inventory of the agent, stored with the verdict; null if the agent did not answer.',
      line: 'Network speed of the node; null or absent if not measured.',
      round_trip:
        'Round trip to the agent, which bounds its distance; null or absent if not measured.',
    },
  ),
);
export type HealthReport = z.output<typeof HealthReport>;

const GpuUuids = z.array(z.string().max(64)).max(64);

/** Resources for a manually requested check: exactly these GPUs and cores. A rented host gets no load test. */
export const CheckRequest = z.object(
  described(
    {
      rental_in_progress: z.boolean(),
      gpu_uuids: GpuUuids,
      cpu_count: z.int().min(1).max(1_024).nullish(),
    },
    {
      rental_in_progress: 'True if a pod uses the node, which then gets no load test.',
      gpu_uuids: 'GPUs to check; empty for all of the host.',
      cpu_count: 'Number of cores to check; null or absent for all of the host.',
    },
  ),
);
export type CheckRequest = z.output<typeof CheckRequest>;

/** Time limit of a requested check. Callers wait up to 300 seconds; the response must arrive earlier. */
export const CHECK_TIMEOUT_MS = 290_000;

/**
 * Without `report`, the central API runs the check and responds with its result; with it, the central API records the
 * verdict.
 */
export const ExecutorHealthCheckRequest = z
  .object({
    ...CheckRequest.shape,
    ...described(
      {
        miner_address: z.string().max(255),
        miner_port: z.int().min(1).max(65_535),
        miner_hotkey: Hotkey,
        container_port: z.int().min(1).max(65_535),
        executor_id: z.uuid().nullish(),
        report: HealthReport.nullish(),
      },
      {
        miner_address: 'Host of the provider, as its validator addresses it.',
        miner_port: 'Port of the provider.',
        miner_hotkey: 'ss58 of the provider.',
        container_port: 'Port of the agent.',
        executor_id: 'Id of the node; null or absent to find it by address and port.',
        report: 'Verdict to record; null or absent to have the node checked.',
      },
    ),
  })
  .meta({
    id: 'ExecutorHealthCheckRequest',
    example: {
      miner_address: '127.0.0.1',
      miner_port: 8080,
      miner_hotkey: '5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY',
      container_port: 8080,
      rental_in_progress: false,
      gpu_uuids: [],
      executor_id: '6f0d1c0e-2b7e-4d55-9a1f-0c7b3f6c1a02',
      report: { verdict: 'withheld', checked_at_ms: 1795737600000, checks: [], inventory: null },
    },
  });
export const ExecutorHealthCheckResponse = z
  .object(
    described(
      {
        success: z.boolean(),
        error: z.string().nullable(),
        details: z.record(z.string(), z.unknown()).nullable(),
        reason_code: z.string().nullable(),
      },
      {
        success: 'True if the node passed, or if the verdict was recorded.',
        error: 'What failed, as a sentence; null if nothing did.',
        details: 'Further facts about the failure; null for none.',
        reason_code:
          'Code of the failure, for example `GPU_RUNTIME_NVML_MISMATCH`; null if nothing failed.',
      },
    ),
  )
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
  /** Fees in micro-USD per hour while all GPUs are rented; absent from a central API of an older version. */
  fee_uusd: z.coerce.number().int().min(0).max(MAX_PRICE_UUSD).optional(),
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
