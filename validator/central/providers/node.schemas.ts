/** Requests and responses of the portal's node routes. */

import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { Hotkey } from '#shared/signing/hotkey.ts';
import { ExecutorLocation, LocationState } from '../market/executors/executor.schemas.ts';
import { NoticePeriod } from '../market/executors/notice-period.ts';
import { CREATED_AT, UPDATED_AT } from '../platform/openapi/field-texts.ts';
import { PageQuery } from '../platform/portal-answer.ts';
import { NaiveTime, Usd, withDefault } from '../platform/wire.ts';
import { GpuType } from './provider.schemas.ts';

const DEFAULT_AGENT_PORT = 8_080;
const MAX_GPUS = 64;

const GpuCount = z.int().min(1).max(MAX_GPUS);

const IpText = z.string().trim().min(1).max(64);

export const AddNode = z
  .object(
    described(
      {
        gpu_type: GpuType,
        ip_address: IpText.nullish(),
        ip: IpText.nullish(),
        port: withDefault(z.int().min(1).max(65_535), DEFAULT_AGENT_PORT),
        price_per_gpu: z.number().min(0).nullish(),
        gpu_count: withDefault(GpuCount, 1),
      },
      {
        gpu_type: 'Short type or full name of the GPU, as in the shared configuration.',
        ip_address: 'IP address of the agent. Either this field or `ip` is required.',
        ip: 'Alternative name of `ip_address`.',
        port: 'Port of the agent.',
        price_per_gpu:
          'Price in USD per GPU and hour, within the allowed range; absent for the reference price.',
        gpu_count: 'Number of GPUs, 1 to 64.',
      },
    ),
  )
  .refine(({ ip, ip_address }) => (ip_address ?? ip) != null, {
    path: ['ip_address'],
    message: 'Field required',
  })
  .meta({
    id: 'AddNode',
    example: {
      gpu_type: 'H100',
      ip_address: '127.0.0.1',
      port: 8090,
      gpu_count: 8,
      price_per_gpu: 2,
    },
  })
  .transform((body) => ({
    gpuType: body.gpu_type,
    ipAddress: body.ip_address ?? body.ip ?? '',
    port: body.port,
    pricePerGpu: body.price_per_gpu ?? null,
    gpuCount: body.gpu_count,
  }));
export type AddNode = z.output<typeof AddNode>;

/** Failed check that prevents rentals, with its remedy. */
export const BlockingReason = z.object(
  described(
    {
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
    },
    {
      code: 'Code of the reason.',
      gating: 'True if the reason prevents rentals.',
      message: 'Description of the problem, as a sentence.',
      measured: 'Measured value.',
      required: 'Required value.',
      fix: 'Recommended action.',
      fix_command: 'Command that fixes the problem; null if there is none.',
      verify_command: 'Command that tests whether the problem is fixed; null if there is none.',
      requires: 'Requirement of the fix command, for example root; null if there is none.',
      docs_url: 'URL of further instructions; null if there are none.',
      kind: 'Kind of the reason: a failed check, or a decision of the provider or the operator.',
    },
  ),
);
export type BlockingReason = z.output<typeof BlockingReason>;

export const PortalNode = z
  .object(
    described(
      {
        id: z.uuid(),
        huid: z.string(),
        gpu_type: z.string(),
        gpu_count: z.int(),
        executor_ip_address: z.string(),
        executor_ip_port: z.string(),
        price_per_gpu: z.number(),
        validator_hotkey: z.string().nullable(),
        miner_hotkey: z.string(),
        rented: z.boolean(),
        status: z.enum(['queued', 'available', 'paused', 'failed', 'removed']),
        min_gpu_count_for_rental: z.int().nullable(),
        available_gpu_count: z.int(),
        notice_period: NoticePeriod.nullable(),
        location: ExecutorLocation.nullable(),
        location_check: LocationState,
        blocking_reasons: z.array(BlockingReason),
        created_at: z.string(),
        updated_at: z.string(),
      },
      {
        id: 'Id of the node.',
        huid: 'Readable name, derived from the id.',
        gpu_type: 'Full name of the GPU type.',
        gpu_count: 'Number of GPUs.',
        executor_ip_address: 'IP address of the agent.',
        executor_ip_port: 'Port of the agent, as text.',
        price_per_gpu: 'Price in USD per GPU and hour for new rentals.',
        validator_hotkey:
          'ss58 of the validator that reported the last verdict; null before the first verdict.',
        miner_hotkey: 'ss58 of the provider.',
        rented: 'True if at least one GPU is rented.',
        status:
          'State of the node: waiting for its first check, available, paused, failed, or removed.',
        min_gpu_count_for_rental:
          'Smallest number of GPUs that a rental may take; null if only the whole node can be rented.',
        available_gpu_count: 'Number of free GPUs.',
        notice_period: 'Announced maintenance or removal; null for none.',
        location:
          'Place that the market shows; null if none was entered, or if evidence contradicts it.',
        location_check:
          'Result of comparing the place that the provider entered with the evidence: `confirmed`, `contradicted`, or `entered` if it was not compared yet or the evidence is not sufficient. Null if no place was entered. A contradicted place is not shown.',
        blocking_reasons: 'Reasons why the node cannot be rented, with their remedies.',
        created_at: CREATED_AT,
        updated_at: UPDATED_AT,
      },
    ),
  )
  .meta({ id: 'PortalNode', description: 'A node, as its provider sees it.' });
export type PortalNode = z.output<typeof PortalNode>;

export const NodeListQuery = PageQuery.extend(
  described(
    { miner_hotkey: Hotkey.optional(), scope: z.enum(['own', 'all']).optional() },
    {
      miner_hotkey:
        "ss58 of the provider whose nodes are returned, with public columns; absent for the caller's nodes.",
      scope:
        "`own` for the caller's nodes; `all` for the nodes of all providers, with public columns.",
    },
  ),
).meta({ example: { scope: 'own' } });
export type NodeListQuery = z.output<typeof NodeListQuery>;

export const NodeParams = z.object({
  id: z.string().regex(/^[A-Za-z0-9_.-]{1,128}$/, 'Not 1 to 128 letters, digits, _ . -'),
});

export const Verification = z
  .object(
    described(
      {
        verified: z.boolean(),
        checked_at: z.string().nullable(),
        validator_hotkey: z.string(),
        score: z.number().nullable(),
        checks: z.array(
          z.object(
            described(
              {
                name: z.string(),
                passed: z.boolean(),
                gating: z.boolean(),
                measured: z.string(),
                required: z.string(),
                message: z.string(),
                fix: z.string(),
                fix_command: z.string().nullable(),
                verify_command: z.string().nullable(),
              },
              {
                name: 'Name of the check.',
                passed: 'True if the node passed.',
                gating:
                  'True if a failure prevents rentals and rewards; false if the result is only recorded.',
                measured: 'Measured value.',
                required: 'Required value.',
                message: 'The result, as a sentence.',
                fix: 'Recommended action after a failure; empty for a passed check.',
                fix_command:
                  'Command that fixes the problem; null if there is none, and for a passed check.',
                verify_command:
                  'Command that tests whether the problem is fixed; null for a passed check.',
              },
            ),
          ),
        ),
        blocking_reasons: z.array(BlockingReason),
      },
      {
        verified: 'True if the node can be rented according to the last verdict.',
        checked_at: 'Time of the last verdict (UTC); null before the first verdict.',
        validator_hotkey: 'ss58 of the validator; empty before the first verdict.',
        score: 'Always null, because verdicts have no score.',
        checks: 'Checks of the last verdict.',
        blocking_reasons: 'Reasons why the node cannot be rented, with their remedies.',
      },
    ),
  )
  .meta({ id: 'Verification', description: 'The last verdict on a node.' });
export type Verification = z.output<typeof Verification>;

export const UpdatePrice = z
  .object(
    described(
      { price_per_gpu: z.number().min(0) },
      {
        price_per_gpu:
          'Price in USD per GPU and hour, within the allowed range. The prices of running pods do not change.',
      },
    ),
  )
  .meta({ id: 'UpdatePrice', example: { price_per_gpu: 2.2 } });
export type UpdatePrice = z.output<typeof UpdatePrice>;

/** Absent fields remain unchanged. */
export const UpdateGpu = z
  .object(
    described(
      { gpu_type: GpuType.nullish(), gpu_count: GpuCount.nullish() },
      {
        gpu_type: 'Short type or full name of the GPU; absent or null leaves it unchanged.',
        gpu_count: 'Number of GPUs, 1 to 64; absent or null leaves it unchanged.',
      },
    ),
  )
  .meta({ id: 'UpdateGpu', example: { gpu_count: 2 } });
export type UpdateGpu = z.output<typeof UpdateGpu>;

export const SetMinimum = z
  .object(
    described(
      { min_gpu_count_for_rental: GpuCount },
      {
        min_gpu_count_for_rental:
          'Smallest number of GPUs that a rental may take, 1 to the number of GPUs of the node.',
      },
    ),
  )
  .meta({ id: 'SetMinimum', example: { min_gpu_count_for_rental: 1 } });

/** Pod in the form that the provider of its node receives. */
export const NodePod = z
  .object(
    described(
      {
        pod_id: z.uuid(),
        pod_name: z.string(),
        status: z.string(),
        gpu_count: z.int(),
        price: Usd,
        created_at: NaiveTime,
        removal_scheduled_at: NaiveTime.nullable(),
        renter_ref: z.string(),
      },
      {
        pod_id: 'Id of the pod.',
        pod_name: 'Name of the pod.',
        status: 'Status of the pod.',
        gpu_count: 'Number of GPUs of the pod.',
        price: 'Price in USD per hour for all GPUs of the pod.',
        created_at: CREATED_AT,
        removal_scheduled_at: 'Time of the scheduled removal (UTC); null if none is scheduled.',
        renter_ref:
          "Pseudonym of the renter. It is the same for all pods of the renter on this provider's nodes.",
      },
    ),
  )
  .meta({ id: 'NodePod' });
export type NodePod = z.output<typeof NodePod>;
