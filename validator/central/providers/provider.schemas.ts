/** What the provider portal takes and answers (contract 10). */
import { z } from 'zod';
import { Hotkey } from '#shared/signing/hotkey.ts';
import { NoticePeriod } from '../executors/notice-period.ts';
import { queryNumber } from '../wire.ts';

const MAX_LIMIT = 1_000;
const DEFAULT_LIMIT = 20;
const DEFAULT_AGENT_PORT = 8_080;
const MAX_GPUS = 64;

/** `{success, data, timestamp}` around one object. */
export function portalAnswer<Data extends z.ZodType>(data: Data) {
  return z.object({ success: z.literal(true), data, timestamp: z.string() });
}

/** The same around a page of a list. */
export function portalList<Item extends z.ZodType>(item: Item) {
  return z.object({
    success: z.literal(true),
    data: z.array(item),
    total: z.int(),
    page: z.int(),
    limit: z.int(),
    pagination: z.object({
      page: z.int(),
      limit: z.int(),
      total: z.int(),
      total_pages: z.int(),
    }),
    timestamp: z.string(),
  });
}

export const PortalLogin = z
  .object({
    miner_hotkey: Hotkey,
    /** Unix seconds as decimal text. */
    message: z.string().max(64),
    /** Hex, with or without 0x. */
    signature: z.string().max(256),
  })
  .meta({ id: 'PortalLogin' });
export type PortalLogin = z.output<typeof PortalLogin>;

export const Miner = z
  .object({
    id: z.uuid(),
    miner_hotkey: z.string(),
    miner_coldkey: z.string().nullable(),
    email: z.string().nullable(),
    discord_id: z.string().nullable(),
    machine_request_subscription: z.array(z.string()),
    created_at: z.string(),
    updated_at: z.string(),
  })
  .meta({ id: 'Miner' });
export type Miner = z.output<typeof Miner>;

export const PortalSession = z.object({ miner: Miner, token: z.string() });

/** Flat, unlike the other answers of the portal. */
export const ProviderProfile = z
  .object({
    provider_id: z.uuid(),
    miner_id: z.uuid(),
    id: z.uuid(),
    miner_hotkey: z.string(),
    miner_coldkey: z.string().nullable(),
    email: z.string().nullable(),
    discord_id: z.string().nullable(),
    discord_connected: z.boolean(),
    extra_incentive_eligible: z.boolean(),
    machine_request_subscription: z.array(z.string()),
    opt_in_status: z.boolean(),
  })
  .meta({ id: 'ProviderProfile' });
export type ProviderProfile = z.output<typeof ProviderProfile>;

const IpText = z.string().trim().min(1).max(64);

export const AddNode = z
  .object({
    gpu_type: z.string().trim().min(1).max(64),
    ip_address: IpText.nullish(),
    /** The same under the specification's name. */
    ip: IpText.nullish(),
    port: z.int().min(1).max(65_535).nullish(),
    price_per_gpu: z.number().min(0).nullish(),
    gpu_count: z.int().min(1).max(MAX_GPUS).nullish(),
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

/** Why a node is not on the market, with what mends it. */
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
    /** A string, as clients of this market expect it. */
    executor_ip_port: z.string(),
    price_per_gpu: z.number(),
    validator_hotkey: z.string().nullable(),
    miner_hotkey: z.string(),
    rented: z.boolean(),
    status: z.enum(['queued', 'available', 'paused', 'failed', 'removed']),
    min_gpu_count_for_rental: z.int().nullable(),
    available_gpu_count: z.int(),
    notice_period: NoticePeriod.nullable(),
    blocking_reasons: z.array(BlockingReason),
    created_at: z.string(),
    updated_at: z.string(),
  })
  .meta({ id: 'PortalNode' });
export type PortalNode = z.output<typeof PortalNode>;

export const NodeListQuery = z.object({
  miner_hotkey: z.string().max(64).optional(),
  scope: z.string().max(20).optional(),
  page: queryNumber(z.int().min(1).default(1)),
  limit: queryNumber(z.int().min(1).max(MAX_LIMIT).default(DEFAULT_LIMIT)),
});
export type NodeListQuery = z.output<typeof NodeListQuery>;

export const NodeParams = z.object({ id: z.string().regex(/^[A-Za-z0-9_.-]{1,128}$/) });

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

export const SharedConfig = z
  .object({
    machine_prices: z.record(z.string(), z.number()),
    machine_min_price_rate: z.number(),
    machine_max_price_rate: z.number(),
    platform_fee_rate: z.number(),
  })
  .meta({ id: 'SharedConfig' });
