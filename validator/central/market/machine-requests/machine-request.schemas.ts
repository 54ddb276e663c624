/** Requests and responses for machine requests, of renters and of providers in the portal. */

import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { EXAMPLE_IDS } from '../../platform/openapi/example-ids.ts';
import { CREATED_AT, UPDATED_AT } from '../../platform/openapi/field-texts.ts';
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
  .object(
    described(
      {
        gpu_class: displayName(MAX_NAME),
        gpu_count: optional(z.int().min(1).max(MAX_GPUS)),
        hourly_budget: optional(z.number().min(SMALLEST_USD).max(MAX_BUDGET_USD)),
        country: optional(displayName(MAX_NAME)),
        min_vram_gb: optional(z.number().min(0).max(MAX_VRAM_GB)),
        notes: optional(displayText(MAX_NOTES)),
        notify: optional(z.boolean()),
      },
      {
        gpu_class: 'Short type (`H100`) or full name of the GPU.',
        gpu_count: 'Number of GPUs, 1 to 64; absent for any.',
        hourly_budget: 'USD per hour for all GPUs together; absent for any.',
        country: 'Country code or name; absent for any.',
        min_vram_gb: 'Memory of each GPU in GB (10^9 bytes); absent for any.',
        notes: 'Notes for providers, up to 1000 characters; absent for none.',
        notify: 'True sends a mail when the request is fulfilled. True if absent.',
      },
    ),
  )
  .meta({
    id: 'MachineRequestCreate',
    example: { gpu_class: 'H100', gpu_count: 8, hourly_budget: 16, notes: 'for a week' },
  });
export type MachineRequestCreate = z.output<typeof MachineRequestCreate>;

export const MachineRequest = z
  .object(
    described(
      {
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
      },
      {
        id: 'Id of the request.',
        user_id: 'Id of the account.',
        gpu_class: 'Short type or full name of the GPU.',
        gpu_count: 'Number of GPUs; null for any.',
        hourly_budget: 'USD per hour for all GPUs together; null for any.',
        country: 'Country code or name; null for any.',
        min_vram_gb: 'Memory of each GPU in GB (10^9 bytes); null for any.',
        notes: 'Notes for providers; null for none.',
        notify: 'True if a mail is sent when the request is fulfilled.',
        status: 'State of the request: open, fulfilled by a node, or cancelled.',
        fulfilled_executor_id:
          'Id of the node that fulfils the request; null while the request is not fulfilled.',
        created_at: CREATED_AT,
        updated_at: UPDATED_AT,
      },
    ),
  )
  .meta({ id: 'MachineRequest' });
export type MachineRequestResponse = z.output<typeof MachineRequest>;

/** Machine request as providers see it, without the renter's identity. */
export const PortalRequest = z
  .object(
    described(
      {
        id: z.uuid(),
        gpu_class: z.string(),
        gpu_count: z.int().nullable(),
        hourly_budget: Usd.nullable(),
        country: z.string().nullable(),
        notes: z.string().nullable(),
        status: z.enum(MACHINE_REQUEST_STATES),
        fulfilled_executor_id: z.uuid().nullable(),
        created_at: NaiveTime,
      },
      {
        id: 'Id of the request.',
        gpu_class: 'Short type or full name of the GPU.',
        gpu_count: 'Number of GPUs; null for any.',
        hourly_budget: 'USD per hour for all GPUs together; null for any.',
        country: 'Country code or name; null for any.',
        notes: 'Notes of the renter; null for none.',
        status: 'State of the request: open, fulfilled by a node, or cancelled.',
        fulfilled_executor_id:
          'Id of the node that fulfils the request; null while the request is not fulfilled.',
        created_at: CREATED_AT,
      },
    ),
  )
  .meta({ id: 'PortalRequest', description: 'A machine request, as providers see it.' });
export type PortalRequest = z.output<typeof PortalRequest>;

/** Counts of pending requests, for providers without a verified node. */
export const RequestAggregate = z
  .object(
    described(
      {
        tier: z.literal('aggregate'),
        open_requests: z.int(),
        by_gpu_class: z.array(
          z.object(
            described(
              { gpu_class: z.string(), count: z.int() },
              { gpu_class: 'Short type of the GPU.', count: 'Number of open requests.' },
            ),
          ),
        ),
        by_hourly_budget_band: z.array(
          z.object(
            described(
              { band: z.string(), count: z.int() },
              {
                band: 'Budget in USD per GPU and hour: `<$1/h`, `$1-3/h`, `$3-10/h`, `$10+/h` or `unknown`.',
                count: 'Number of open requests.',
              },
            ),
          ),
        ),
      },
      {
        tier: 'Always `aggregate`: single requests are listed for providers with a verified node.',
        open_requests: 'Number of open requests.',
        by_gpu_class: 'Open requests by GPU type.',
        by_hourly_budget_band: 'Open requests by budget in USD per GPU and hour.',
      },
    ),
  )
  .meta({ id: 'RequestAggregate', description: 'Counts of open machine requests.' });
export type RequestAggregate = z.output<typeof RequestAggregate>;

export const MachineAdded = z
  .object(
    described(
      {
        machine_request_id: optional(Uuid),
        request_id: optional(Uuid),
        executor_id: optional(Uuid),
      },
      {
        machine_request_id:
          'Id of the machine request that the node fulfils. Required, under this name or as `request_id`.',
        request_id: 'Another name of `machine_request_id`.',
        executor_id: 'Id of the node. Ignored if the path contains an id.',
      },
    ),
  )
  .refine(({ machine_request_id, request_id }) => (machine_request_id ?? request_id) != null, {
    path: ['machine_request_id'],
    message: 'Field required',
  })
  .meta({
    id: 'MachineAdded',
    example: { machine_request_id: EXAMPLE_IDS.machineRequest, executor_id: EXAMPLE_IDS.node },
  })
  .transform((body) => ({
    requestId: body.machine_request_id ?? body.request_id ?? '',
    executorId: body.executor_id ?? null,
  }));
export type MachineAdded = z.output<typeof MachineAdded>;
