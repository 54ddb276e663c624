/** Requests and responses of the portal's node routes. */
import { z } from 'zod';
import { Hotkey } from '#shared/signing/hotkey.ts';
import { ExecutorLocation, LocationState } from '../market/executors/executor.schemas.ts';
import { NoticePeriod } from '../market/executors/notice-period.ts';
import { PageQuery } from '../platform/portal-answer.ts';
import { NaiveTime, Usd } from '../platform/wire.ts';
import { GpuType } from './provider.schemas.ts';

const DEFAULT_AGENT_PORT = 8_080;
const MAX_GPUS = 64;

const GpuCount = z.int().min(1).max(MAX_GPUS);

const IpText = z.string().trim().min(1).max(64);

export const AddNode = z
  .object({
    gpu_type: GpuType,
    ip_address: IpText.nullish(),
    /** Alias of `ip_address`. */
    ip: IpText.nullish(),
    port: z.int().min(1).max(65_535).nullish(),
    price_per_gpu: z.number().min(0).nullish(),
    gpu_count: GpuCount.nullish(),
  })
  .refine(({ ip, ip_address }) => (ip_address ?? ip) != null, {
    path: ['ip_address'],
    message: 'Field required',
  })
  .meta({ id: 'AddNode' })
  .transform((body) => ({
    gpuType: body.gpu_type,
    ipAddress: body.ip_address ?? body.ip ?? '',
    port: body.port ?? DEFAULT_AGENT_PORT,
    pricePerGpu: body.price_per_gpu ?? null,
    gpuCount: body.gpu_count ?? 1,
  }));
export type AddNode = z.output<typeof AddNode>;

/** Failed check that prevents rentals, with its remedy. */
export const BlockingReason = z.object({
  code: z.string(),
  gating: z.boolean(),
  message: z.string(),
  measured: z.string(),
  required: z.string(),
  fix: z.string(),
  fix_command: z.string().nullable(),
  verify_command: z.string().nullable(),
  requires: z.string().nullable(),
  docs_url: z.string().nullable(),
  kind: z.string(),
});
export type BlockingReason = z.output<typeof BlockingReason>;

export const PortalNode = z
  .object({
    id: z.uuid(),
    huid: z.string(),
    gpu_type: z.string(),
    gpu_count: z.int(),
    executor_ip_address: z.string(),
    /** A string, because existing clients expect one. */
    executor_ip_port: z.string(),
    price_per_gpu: z.number(),
    validator_hotkey: z.string().nullable(),
    miner_hotkey: z.string(),
    rented: z.boolean(),
    status: z.enum(['queued', 'available', 'paused', 'failed', 'removed']),
    min_gpu_count_for_rental: z.int().nullable(),
    available_gpu_count: z.int(),
    notice_period: NoticePeriod.nullable(),
    location: ExecutorLocation.nullable().meta({
      description:
        'Place as the market shows it; null if none was entered, or if it is contradicted',
    }),
    location_check: LocationState,
    blocking_reasons: z.array(BlockingReason),
    created_at: z.string(),
    updated_at: z.string(),
  })
  .meta({ id: 'PortalNode' });
export type PortalNode = z.output<typeof PortalNode>;

export const NodeListQuery = PageQuery.extend({
  miner_hotkey: Hotkey.optional(),
  scope: z.enum(['own', 'all']).optional(),
});
export type NodeListQuery = z.output<typeof NodeListQuery>;

export const NodeParams = z.object({
  id: z.string().regex(/^[A-Za-z0-9_.-]{1,128}$/, 'Not 1 to 128 letters, digits, _ . -'),
});

export const Verification = z
  .object({
    verified: z.boolean(),
    checked_at: z.string().nullable(),
    validator_hotkey: z.string().nullable(),
    score: z.number().nullable(),
    checks: z.array(
      z.object({
        name: z.string(),
        passed: z.boolean(),
        measured: z.string(),
        required: z.string(),
        message: z.string(),
      }),
    ),
    blocking_reasons: z.array(BlockingReason),
  })
  .meta({ id: 'Verification' });
export type Verification = z.output<typeof Verification>;

export const UpdatePrice = z
  .object({ price_per_gpu: z.number().min(0) })
  .meta({ id: 'UpdatePrice' });
export type UpdatePrice = z.output<typeof UpdatePrice>;

/** Absent fields keep their values. */
export const UpdateGpu = z
  .object({ gpu_type: GpuType.nullish(), gpu_count: GpuCount.nullish() })
  .meta({ id: 'UpdateGpu' });
export type UpdateGpu = z.output<typeof UpdateGpu>;

export const SetMinimum = z
  .object({ min_gpu_count_for_rental: GpuCount })
  .meta({ id: 'SetMinimum' });

/** Pod as the node's provider sees it. */
export const NodePod = z
  .object({
    pod_id: z.uuid(),
    pod_name: z.string(),
    status: z.string(),
    gpu_count: z.int(),
    /** USD per hour for all GPUs of the pod. */
    price: Usd,
    created_at: NaiveTime,
    removal_scheduled_at: NaiveTime.nullable(),
    /** Pseudonym of the renter, equal for all its pods on this provider's nodes. */
    renter_ref: z.string(),
  })
  .meta({ id: 'NodePod' });
export type NodePod = z.output<typeof NodePod>;
