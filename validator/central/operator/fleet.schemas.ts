/** Wire schemas of nodes and providers below /api/operator. */
import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { CREATED_AT, LIMIT, PAGE, TOTAL } from '../platform/openapi/field-texts.ts';
import { PageQuery } from '../platform/portal-answer.ts';
import { NaiveTime, queryNumber, Usd } from '../platform/wire.ts';
import { NODE_OFFERS } from './fleet.store.ts';

const MAX_QUERY_CHARS = 254;
const OFFER =
  '`rentable`, or the first reason why the node cannot be rented: `provider_banned`, `node_paused_by_provider` (also after an opt-out), `node_not_verified`, `node_unavailable` (every GPU is rented, or the node runs unknown pods), `gpu_count_invalid` (fewer GPUs are free than the minimum of a rental); `removed` for a removed node.';
const HOTKEY = "ss58 of the provider's hotkey.";

export const FleetQuery = PageQuery.extend(
  described(
    {
      q: z.string().max(MAX_QUERY_CHARS).default(''),
      offer: z.enum(NODE_OFFERS).optional(),
      free: z.stringbool().optional(),
      min_check_age_minutes: queryNumber(z.int().min(1)).optional(),
    },
    {
      q: "Id or IP address of the node, hotkey of its provider, or a part of the GPU's name; absent for all nodes.",
      offer: `Only nodes with this offer: ${OFFER} Absent for all nodes except removed nodes.`,
      free: 'True: only nodes with free GPUs; false: only nodes without free GPUs; absent for both.',
      min_check_age_minutes:
        'Only nodes whose last check by a validator is at least this old, or which no validator has checked.',
    },
  ),
).meta({ example: { page: 1, limit: 20, free: true, offer: 'rentable' } });
export type FleetQuery = z.output<typeof FleetQuery>;

const Slot = z.object(
  described(
    { index: z.int(), pod_id: z.uuid().nullable() },
    {
      index: 'Number of the GPU.',
      pod_id: 'Id of the pod that uses the GPU; null if the GPU is free.',
    },
  ),
);

const FleetNode = z.object(
  described(
    {
      id: z.uuid(),
      huid: z.string(),
      provider_id: z.uuid(),
      miner_hotkey: z.string(),
      executor_ip_address: z.string(),
      executor_ip_port: z.string(),
      machine_name: z.string(),
      gpu_count: z.int(),
      free_gpu_count: z.int(),
      min_gpu_count: z.int(),
      price_per_gpu: Usd,
      offer: z.enum(NODE_OFFERS),
      reasons: z.array(
        z.object(
          described(
            { code: z.string(), message: z.string() },
            {
              code: 'Error code that a rental of the node returns.',
              message: 'The reason, as a sentence.',
            },
          ),
        ),
      ),
      slots: z.array(Slot),
      validator_hotkey: z.string().nullable(),
      checked_at: NaiveTime.nullable(),
      last_seen_at: NaiveTime.nullable(),
      simulated: z.boolean(),
      created_at: NaiveTime,
    },
    {
      id: 'Id of the node.',
      huid: 'Readable name, derived from the id; not unique.',
      provider_id: 'Id of the provider.',
      miner_hotkey: HOTKEY,
      executor_ip_address: 'IP address of the agent.',
      executor_ip_port: 'Port of the agent, as text.',
      machine_name:
        'Measured full GPU name; before the first check, the name that the provider stated.',
      gpu_count:
        'Measured number of GPUs; before the first check, the number that the provider stated.',
      free_gpu_count: 'Number of GPUs without a pod.',
      min_gpu_count: 'Smallest number of GPUs that can be rented.',
      price_per_gpu: 'Price in USD per GPU and hour.',
      offer: OFFER,
      reasons: 'All reasons why the node cannot be rented; empty if it can be rented.',
      slots: 'GPUs with their pods; empty before the first passed check.',
      validator_hotkey:
        'ss58 of the validator that reported the last verdict; null before the first verdict.',
      checked_at: 'Time of the last verdict (UTC); null before the first verdict.',
      last_seen_at: 'Time at which the agent last responded (UTC); null if it has never responded.',
      simulated: "True if the node's GPUs are simulated.",
      created_at: CREATED_AT,
    },
  ),
);

export const FleetPage = z
  .object(
    described(
      { nodes: z.array(FleetNode), page: z.int(), limit: z.int(), total: z.int() },
      {
        nodes: 'Nodes of this page, in the order of their ids.',
        page: PAGE,
        limit: LIMIT,
        total: TOTAL,
      },
    ),
  )
  .meta({ id: 'FleetPage' });
export type FleetPage = z.output<typeof FleetPage>;

export const FleetSummary = z
  .object(
    described(
      {
        nodes: z.int(),
        gpus: z.int(),
        free_gpus: z.int(),
        free_not_rentable_gpus: z.int(),
        offers: z.array(
          z.object(
            described(
              {
                offer: z.enum(NODE_OFFERS),
                nodes: z.int(),
                gpus: z.int(),
                free_gpus: z.int(),
              },
              {
                offer: OFFER,
                nodes: 'Number of nodes.',
                gpus: 'Number of GPUs of these nodes.',
                free_gpus: 'Number of GPUs of these nodes without a pod.',
              },
            ),
          ),
        ),
      },
      {
        nodes: 'Number of nodes, without removed nodes.',
        gpus: 'Number of measured GPUs.',
        free_gpus: 'Number of GPUs without a pod.',
        free_not_rentable_gpus: 'Number of GPUs without a pod on nodes that cannot be rented.',
        offers: 'The same numbers by offer. Offers without a node are omitted.',
      },
    ),
  )
  .meta({ id: 'FleetSummary' });
export type FleetSummary = z.output<typeof FleetSummary>;

export const ProvidersQuery = PageQuery.extend(
  described(
    {
      q: z.string().max(MAX_QUERY_CHARS).default(''),
      banned: z.stringbool().optional(),
    },
    {
      q: 'Id, hotkey or coldkey, or a part of the e-mail address; absent for all providers.',
      banned:
        'True: only banned providers; false: only providers that are not banned; absent for both.',
    },
  ),
).meta({ example: { page: 1, limit: 20, banned: false } });

const OperatorProvider = z.object(
  described(
    {
      id: z.uuid(),
      hotkey: z.string(),
      coldkey: z.string().nullable(),
      email: z.string().nullable(),
      opted_in: z.boolean(),
      banned: z.boolean(),
      banned_at: NaiveTime.nullable(),
      ban_reason: z.string().nullable(),
      nodes: z.int(),
      gpus: z.int(),
      free_gpus: z.int(),
      unpaid: Usd,
      created_at: NaiveTime,
    },
    {
      id: 'Id of the provider, which is the subject id in audit entries.',
      hotkey: HOTKEY,
      coldkey: 'ss58 of the coldkey; null if unknown.',
      email: 'E-mail address; null if none was set.',
      opted_in: 'False if the provider has opted out.',
      banned: 'True if the provider is banned.',
      banned_at: 'Time of the ban (UTC); null if the provider is not banned.',
      ban_reason: 'Reason of the ban; null if the provider is not banned.',
      nodes: 'Number of nodes, without removed ones.',
      gpus: 'Number of their GPUs.',
      free_gpus: 'Number of their GPUs without a pod.',
      unpaid:
        'USD that the provider has earned and that were not paid out; below 0 if the provider owes money.',
      created_at: CREATED_AT,
    },
  ),
);

export const OperatorProviderPage = z
  .object(
    described(
      { providers: z.array(OperatorProvider), page: z.int(), limit: z.int(), total: z.int() },
      {
        providers: 'Providers of this page, newest first.',
        page: PAGE,
        limit: LIMIT,
        total: TOTAL,
      },
    ),
  )
  .meta({ id: 'OperatorProviderPage' });
export type OperatorProviderPage = z.output<typeof OperatorProviderPage>;
