/** Machine requests of renters on the wire (contract 8). */
import { z } from 'zod';
import { displayName, displayText, NaiveTime, optional, Usd } from '../../platform/wire.ts';
import { MACHINE_REQUEST_STATES } from './machine-request.state.ts';

const MAX_GPUS = 64;
const MAX_NAME = 200;
const MAX_NOTES = 1_000;
const MAX_BUDGET_USD = 1_000_000;
/** What a budget is kept in. */
const SMALLEST_USD = 0.000_001;
const MAX_VRAM_GB = 1_000_000;

/** No member has a default: the idempotency fingerprint covers what was sent. GB are 10^9 bytes. */
export const MachineRequestCreate = z
  .object({
    /** Short type or full name. */
    gpu_class: displayName(MAX_NAME),
    gpu_count: optional(z.int().min(1).max(MAX_GPUS)),
    /** USD per hour for all GPUs together. */
    hourly_budget: optional(z.number().min(SMALLEST_USD).max(MAX_BUDGET_USD)),
    /** Code or name. */
    country: optional(displayName(MAX_NAME)),
    /** Of each GPU. */
    min_vram_gb: optional(z.number().min(0).max(MAX_VRAM_GB)),
    notes: optional(displayText(MAX_NOTES)),
    /** True when absent. */
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
