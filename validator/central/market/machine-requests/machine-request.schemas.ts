/** Requests and responses for machine requests: those of renters, and those of providers in the portal. */
import { z } from 'zod';
import { displayName, displayText, NaiveTime, optional, Usd, Uuid } from '../../platform/wire.ts';
import { MACHINE_REQUEST_STATES } from './machine-request.state.ts';

const MAX_GPUS = 64;
const MAX_NAME = 200;
const MAX_NOTES = 1_000;
const MAX_BUDGET_USD = 1_000_000;
/** One micro-dollar, the unit in which budgets are stored. */
const SMALLEST_USD = 0.000_001;
const MAX_VRAM_GB = 1_000_000;

/** Fields have no defaults, so that the idempotency fingerprint covers the body as sent. GB are 10^9 bytes. */
export const MachineRequestCreate = z
  .object({
    /** Short type or full name. */
    gpu_class: displayName(MAX_NAME),
    gpu_count: optional(z.int().min(1).max(MAX_GPUS)),
    /** USD per hour for all GPUs together. */
    hourly_budget: optional(z.number().min(SMALLEST_USD).max(MAX_BUDGET_USD)),
    /** Country code or name. */
    country: optional(displayName(MAX_NAME)),
    /** Memory of each GPU. */
    min_vram_gb: optional(z.number().min(0).max(MAX_VRAM_GB)),
    notes: optional(displayText(MAX_NOTES)),
    /** Default: true. */
    notify: optional(z.boolean()),
  })
  .meta({ id: 'MachineRequestCreate' });
export type MachineRequestCreate = z.output<typeof MachineRequestCreate>;

export const MachineRequest = z
  .object({
    id: z.uuid(),
    user_id: z.uuid(),
    gpu_class: z.string(),
    gpu_count: z.int().nullable(),
    hourly_budget: Usd.nullable(),
    country: z.string().nullable(),
    min_vram_gb: z.number().nullable(),
    notes: z.string().nullable(),
    notify: z.boolean(),
    status: z.enum(MACHINE_REQUEST_STATES),
    fulfilled_executor_id: z.uuid().nullable(),
    created_at: NaiveTime,
    updated_at: NaiveTime,
  })
  .meta({ id: 'MachineRequest' });
export type MachineRequestResponse = z.output<typeof MachineRequest>;

/** Machine request as providers see it, without the renter's identity. */
export const PortalRequest = z
  .object({
    id: z.uuid(),
    gpu_class: z.string(),
    gpu_count: z.int().nullable(),
    /** USD per hour for all GPUs together. */
    hourly_budget: Usd.nullable(),
    country: z.string().nullable(),
    notes: z.string().nullable(),
    status: z.enum(MACHINE_REQUEST_STATES),
    fulfilled_executor_id: z.uuid().nullable(),
    created_at: NaiveTime,
  })
  .meta({ id: 'PortalRequest' });
export type PortalRequest = z.output<typeof PortalRequest>;

/** Counts of pending requests, for providers without a verified node. */
export const RequestAggregate = z
  .object({
    tier: z.literal('aggregate'),
    open_requests: z.int(),
    by_gpu_class: z.array(z.object({ gpu_class: z.string(), count: z.int() })),
    by_hourly_budget_band: z.array(z.object({ band: z.string(), count: z.int() })),
  })
  .meta({ id: 'RequestAggregate' });
export type RequestAggregate = z.output<typeof RequestAggregate>;

export const MachineAdded = z
  .object({
    machine_request_id: optional(Uuid),
    /** Alias of `machine_request_id`. */
    request_id: optional(Uuid),
    /** Node that was added; ignored if the path contains one. */
    executor_id: optional(Uuid),
  })
  .refine(({ machine_request_id, request_id }) => (machine_request_id ?? request_id) != null, {
    path: ['machine_request_id'],
    message: 'Field required',
  })
  .meta({ id: 'MachineAdded' })
  .transform((body) => ({
    requestId: body.machine_request_id ?? body.request_id ?? '',
    executorId: body.executor_id ?? null,
  }));
export type MachineAdded = z.output<typeof MachineAdded>;
