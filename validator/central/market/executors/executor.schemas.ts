/** Requests and responses of the public node routes. */
import { z } from 'zod';
import { queryNumber, Uuid } from '../../platform/wire.ts';
import { ETA_BASES } from './launch-estimate.ts';
import { NoticePeriod } from './notice-period.ts';
import { ExecutorSpecs } from './specs.ts';

/** Largest page of GET /executors. Older clients request exactly this size. */
export const MAX_PAGE_SIZE = 1_000;

export const ExecutorParams = z.object({ executor_uuid: Uuid });

/** Filters of GET /executors and GET /pods. */
export const NodeFilterQuery = z.object({
  machine_names: z.string().max(4_000).optional(),
  price_lte: queryNumber(z.number()).optional(),
  price_gte: queryNumber(z.number()).optional(),
  gpu_count_lte: queryNumber(z.int()).optional(),
  gpu_count_gte: queryNumber(z.int()).optional(),
  lat: queryNumber(z.number().min(-90).max(90)).optional(),
  lon: queryNumber(z.number().min(-180).max(180)).optional(),
  max_distance_mile: queryNumber(z.number().min(0)).optional(),
  bookmarked: z.stringbool().optional(),
  machine_request_id: z.string().max(100).toLowerCase().optional(),
  collateral_deposited: z.stringbool().optional(),
});
export type NodeFilterQuery = z.output<typeof NodeFilterQuery>;

export const ExecutorListQuery = NodeFilterQuery.extend({
  page: queryNumber(z.int().min(1)).optional(),
  size: queryNumber(z.int().min(1).max(MAX_PAGE_SIZE)).optional(),
  view: z.literal('summary').optional(),
  min_download_mbps: queryNumber(z.number().min(0)).optional(),
  nvlink: z.stringbool().optional(),
  /** Ignored: every listed node is available. */
  available: z.stringbool().optional(),
  explain: z.stringbool().optional().meta({
    description: 'Answers an ExplainedExecutorList instead of the bare array.',
  }),
});
export type ExecutorListQuery = z.output<typeof ExecutorListQuery>;

/** A known location has a country: clients call string methods on both members. */
export const ExecutorLocation = z.object({
  country: z.string(),
  country_code: z.string(),
  region: z.string().nullable(),
  region_name: z.string().nullable(),
  city: z.string().nullable(),
  zip: z.string().nullable(),
  lat: z.number().nullable(),
  lon: z.number().nullable(),
  timezone: z.string().nullable(),
});
export type ExecutorLocation = z.output<typeof ExecutorLocation>;

export const LocationState = z.enum(['entered', 'confirmed', 'contradicted']).nullable().meta({
  description:
    'Result for the place that the provider entered: `entered` (not compared yet, or the evidence does not decide), `confirmed` or `contradicted` by the evidence; null if none was entered. A contradicted place is not shown.',
});

export const ExecutorDetailResponse = z
  .object({
    id: z.uuid(),
    huid: z.string(),
    machine_name: z.string(),
    gpu_type: z.string(),
    price_per_gpu: z.number(),
    price_per_hour: z.number(),
    gpu_count: z.int(),
    available_gpu_count: z.int(),
    min_gpu_count_for_rental: z.int().nullable(),
    executor_ip_address: z.string(),
    status: z.string(),
    active: z.boolean(),
    tier: z.enum(['secure', 'spot']),
    driver_version: z.string().nullable(),
    max_cuda_version: z.number().nullable(),
    effective_upload_speed_mbps: z.number().nullable(),
    effective_download_speed_mbps: z.number().nullable(),
    /** Null if the country is unknown. */
    location: ExecutorLocation.nullable(),
    /** Omitted with `view=summary`. */
    specs: ExecutorSpecs.nullable().optional(),
    reliability_score: z.number().nullable(),
    uptime_in_minutes: z.int().nullable(),
    miner_hotkey: z.string().nullable(),
    validator_hotkey: z.string().nullable(),
    provider_id: z.string().nullable(),
    collateral_deposited: z.boolean(),
    ncu_profiling_enabled: z.boolean().nullable(),
    pending_price_per_hour: z.number().nullable(),
    price_change_effective_date: z.string().nullable(),
    /** Present only for requests with a credential. */
    is_bookmarked: z.boolean().optional(),
    machine_request_id: z.string().nullable().optional(),
    notice_period: NoticePeriod.nullable(),
    nvlink: z.boolean().nullable(),
    interconnect: z.string().nullable(),
    p2p: z.boolean().nullable(),
    location_check: LocationState,
    /** True for simulated GPUs. */
    simulated: z.boolean(),
  })
  .meta({ id: 'ExecutorDetailResponse' });
export type ExecutorDetailResponse = z.output<typeof ExecutorDetailResponse>;

const ConstraintValue = z.union([z.string(), z.number(), z.boolean()]);

/** Members of answers that explain which constraint left how many nodes. */
export const explanation = {
  funnel: z
    .array(
      z.object({
        constraint: z.string().meta({ description: 'Name of the constraint in the request.' }),
        remaining: z.int().meta({
          description: 'Number of nodes that meet this constraint and all earlier ones.',
        }),
      }),
    )
    .meta({
      description:
        'What each constraint left, in order. The first entry counts the nodes that can be rented now.',
    }),
  nearest: z
    .array(
      z.object({
        constraint: z.string().meta({ description: 'The first constraint that left no node.' }),
        requested: ConstraintValue.meta({
          description: 'Value in the request; `all` for the GPUs of a whole node.',
        }),
        offered: ConstraintValue.meta({
          description: 'Value that accepts this node; `unknown` if the node does not report it.',
        }),
        executor_id: z.uuid().meta({ description: 'Id of the node.' }),
      }),
    )
    .meta({
      description:
        'Up to 3 nodes that the first constraint without a match rejected, the nearest first. Empty if nodes are left.',
    }),
};

export const ExplainedExecutorList = z
  .object({ executors: z.array(ExecutorDetailResponse), ...explanation })
  .meta({ id: 'ExplainedExecutorList' });

export const ExecutorCountResponse = z.object({ count: z.int() });

export const TotalCountExecutorResponse = z
  .object({ total_count: z.int() })
  .meta({ id: 'TotalCountExecutorResponse' });

export const ExecutorStatsResponse = z
  .object({
    machine_name: z.string(),
    gpu_type: z.string(),
    total_executor_count: z.int(),
    rented_executor_count: z.int(),
    available_executor_count: z.int(),
    total_gpu_count: z.int(),
    rented_gpu_count: z.int(),
    available_gpu_count: z.int(),
    min_price_per_gpu: z.number().nullable(),
    avg_price_per_gpu: z.number().nullable(),
    max_price_per_gpu: z.number().nullable(),
    rental_rate: z.number(),
  })
  .meta({ id: 'ExecutorStatsResponse' });
export type ExecutorStatsResponse = z.output<typeof ExecutorStatsResponse>;

export const RentabilityResponse = z
  .object({
    rentable: z.boolean(),
    reasons: z.array(z.object({ code: z.string(), message: z.string() })),
    free_gpu_count: z.int(),
    min_gpu_count: z.int().nullable(),
  })
  .meta({ id: 'RentabilityResponse' });
export type RentabilityResponse = z.output<typeof RentabilityResponse>;

export const DefaultDockerImageQuery = z.object({
  gpu_model: z.string().min(1).max(200),
  driver_version: z.string().min(1).max(50),
});
export const DefaultDockerImage = z
  .object({
    docker_image: z.string(),
    docker_image_tag: z.string(),
    docker_image_size: z.int().nullable(),
    docker_image_digest: z.string().nullable(),
  })
  .meta({ id: 'DefaultDockerImage' });
export type DefaultDockerImage = z.output<typeof DefaultDockerImage>;

export const MachineResponse = z
  .object({
    name: z.string(),
    price: z.number(),
    rental_rate: z.number(),
    total_gpu_count: z.int(),
  })
  .meta({ id: 'MachineResponse' });
export type MachineResponse = z.output<typeof MachineResponse>;

export const MachineCapacityResponse = z
  .object({
    base_model: z.string(),
    buckets: z.record(
      z.string(),
      z.object({ max_cap: z.int(), unrented_count: z.int(), hourly_rate: z.number() }),
    ),
  })
  .meta({ id: 'MachineCapacityResponse' });
export type MachineCapacityResponse = z.output<typeof MachineCapacityResponse>;

export const DeploymentEstimateQuery = z.object({ template_id: Uuid, executor_id: Uuid });
export type DeploymentEstimateQuery = z.output<typeof DeploymentEstimateQuery>;

export const DeploymentEstimateResponse = z
  .object({
    estimated_seconds: z.number(),
    /** Basis of the estimate: launches, pull_speed or assumed. */
    eta_basis: z.enum(ETA_BASES),
    is_slow_machine: z.boolean(),
    warning_message: z.string().nullable(),
    is_cached_template: z.boolean(),
    /** Compressed bytes. */
    docker_image_size: z.int().nullable(),
    /** Balance required to rent the whole node. */
    required_balance_usd: z.number(),
    price_per_hour: z.number(),
  })
  .meta({ id: 'DeploymentEstimateResponse' });
export type DeploymentEstimateResponse = z.output<typeof DeploymentEstimateResponse>;
