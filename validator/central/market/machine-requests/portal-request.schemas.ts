/** Machine requests as providers see and answer them (contract 10). */
import { z } from 'zod';
import { NaiveTime, optional, Usd, Uuid } from '../../platform/wire.ts';
import { MACHINE_REQUEST_STATES } from './machine-request.state.ts';

/** Nothing in it says whose it is. */
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

/** For providers without a verified node. */
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
    /** The same under the specification's name. */
    request_id: optional(Uuid),
    /** The node that was added; where the path names one it need not be. */
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
