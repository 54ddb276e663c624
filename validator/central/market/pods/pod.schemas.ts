/** Pods in the form that the routes return, and the queries of pod lists. */

import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { BackupConfig } from '../../backups/backup.schemas.ts';
import { AccountEvent } from '../../delivery/events/event.schemas.ts';
import {
  HAS_NEXT,
  LIMIT,
  PAGE,
  SUCCESS,
  TOTAL,
  UPDATED_AT,
} from '../../platform/openapi/field-texts.ts';
import { NaiveTime, queryNumber, Uuid, withDefault } from '../../platform/wire.ts';
import { ExecutorLocation } from '../executors/executor.schemas.ts';
import { NodeFilterQuery } from '../executors/node-filters.schemas.ts';
import { NoticePeriod } from '../executors/notice-period.ts';
import { ExecutorSpecs } from '../executors/specs.ts';
import { TemplateResponse } from '../templates/template.schemas.ts';
import { Volume } from '../volumes/volume.schemas.ts';
import { WIRE_PHASES, WIRE_STATUSES } from './pod.state.ts';

export const PodParams = z.object({ id: Uuid });

export const PodListQuery = NodeFilterQuery.extend(
  described(
    { only_favorites: z.stringbool().optional(), include_deleting: z.stringbool().optional() },
    {
      only_favorites: 'True selects only pods that the account marked as favorites.',
      include_deleting:
        'True also lists pods that are being deleted, until their node has removed them. Then they are in `GET /pods/history`.',
    },
  ),
).meta({ example: { gpu_count_gte: 1, only_favorites: false } });
export type PodListQuery = z.output<typeof PodListQuery>;

export const PodDetailQuery = z
  .object(
    described(
      { include_deleted: z.stringbool().optional() },
      { include_deleted: 'True also returns a deleted pod, with the status DELETED.' },
    ),
  )
  .meta({ example: { include_deleted: true } });

/** The template as it was when the pod was rented or last changed. To edit it, clients send the whole object. */
export type PodTemplate = TemplateResponse;

const PodExecutor = z
  .object(
    described(
      {
        id: z.uuid(),
        huid: z.string(),
        machine_name: z.string(),
        price_per_gpu: z.number(),
        price_per_hour: z.number(),
        executor_ip_address: z.string(),
        validator_hotkey: z.string().nullable(),
        gpu_count: z.int(),
        specs: ExecutorSpecs,
        active: z.boolean(),
        location: ExecutorLocation.nullable(),
        uptime_in_minutes: z.int().nullable(),
        simulated: z.boolean(),
        disk_health_ok: z.boolean().nullable().optional(),
      },
      {
        id: 'Id of the node.',
        huid: 'Readable name of the node.',
        machine_name: 'Full name of its GPUs.',
        price_per_gpu: 'USD per GPU and hour at which the pod was rented.',
        price_per_hour: 'USD per hour for all GPUs of the node, at the price of the pod.',
        executor_ip_address: 'Public IP address of the node.',
        validator_hotkey:
          'ss58 of the validator with the last verdict; null before the first verdict.',
        gpu_count: 'Number of GPUs of the node.',
        specs: 'Hardware as the agent measured it.',
        active: 'True while the node is in the marketplace.',
        location: 'Place of the node; null if the country is unknown.',
        uptime_in_minutes:
          'Minutes for which every check has reached the node; null before the first passed check, and while the node is unreachable.',
        simulated: 'True if the GPUs are simulated.',
        disk_health_ok:
          'True if the disks of the node are healthy; null if unknown; absent in lists.',
      },
    ),
  )
  .meta({ id: 'PodExecutor' });

export const PodSshKey = z.object(
  described(
    { id: z.uuid(), name: z.string(), public_key: z.string() },
    {
      id: "Id of the account's key, or an id derived from a key that is not registered with the account.",
      name: 'Name of the key.',
      public_key: 'Public key in OpenSSH format.',
    },
  ),
);
export type PodSshKey = z.output<typeof PodSshKey>;

const podListShape = described(
  {
    id: z.uuid(),
    pod_name: z.string(),
    status: z.enum(WIRE_STATUSES),
    ssh_connect_cmd: z.string().nullable(),
    ssh_host_key: z.string().nullable(),
    known_hosts: z.string().nullable(),
    ports_mapping: z.record(z.string(), z.int()),
    gpu_name: z.string(),
    gpu_count: z.string(),
    cpu_name: z.string(),
    cpu_count: z.int(),
    ram_total: z.int(),
    price: z.number(),
    created_at: z.string(),
    updated_at: z.string(),
    removal_scheduled_at: z.string().nullable(),
    termination_hours: z.number().nullable(),
    jupyter_installation_status: z.enum(['SUCCESS', 'FAILED']).nullable(),
    jupyter_url: z.string().nullable(),
    enable_jupyter: z.boolean(),
    jupyter_error: z.string().nullable(),
    is_favorite: z.boolean(),
    template: TemplateResponse,
    executor: PodExecutor,
    executor_id: z.uuid(),
    template_id: z.string().nullable(),
    user_id: z.string(),
    volume: Volume.nullable(),
    ssh_keys: z.array(PodSshKey),
    notice_period: NoticePeriod.nullable(),
    source: z.string(),
    client_version: z.string().nullable(),
    created_by_api_key_id: z.string().nullable(),
    skip_add_agent_ssh_key: z.boolean(),
    phase: z.enum(WIRE_PHASES).nullable(),
    estimated_ready_seconds: z.number().nullable(),
    eta_basis: z.string().nullable(),
    workspace_id: z.null(),
    cluster_id: z.null(),
    cluster_name: z.null(),
    enable_volume_encryption: z.boolean(),
    volume_encryption_status: z.null(),
    reason_code: z.string().nullable(),
    message: z.string().nullable(),
    max_spend_usd: z.number().nullable(),
    idle_shutdown_minutes: z.int().nullable(),
    spent_usd: z.number(),
  },
  {
    id: 'Id of the pod.',
    pod_name: 'Name of the pod.',
    status: 'Status of the pod. A pod is ready when it is RUNNING and has an `ssh_connect_cmd`.',
    ssh_connect_cmd: 'Command that opens an SSH session; null while the pod is unreachable.',
    ssh_host_key:
      "Public host key of the node's SSH gateway. All pods of a node have the same host key. Null before the launch, and for a pod that runs its own SSH server.",
    known_hosts:
      'Line for a known_hosts file with `ssh_host_key` and the address in `ssh_connect_cmd`.',
    ports_mapping: 'External port by internal port of the container; empty before the start.',
    gpu_name: 'Full name of the GPUs; empty for a pod without GPUs.',
    gpu_count: 'Number of GPUs, as text.',
    cpu_name: "Name of the node's processor.",
    cpu_count: 'Number of processors that the pod may use, rounded down.',
    ram_total: 'Memory that the pod may use, in KiB.',
    price: 'USD per hour for all GPUs of the pod, fixed when it was rented.',
    created_at: 'Time of the rental (UTC).',
    updated_at: UPDATED_AT,
    removal_scheduled_at: 'Time of the scheduled removal (UTC); null for none.',
    termination_hours: 'Hours after the rental at which the pod is removed; null for none.',
    jupyter_installation_status:
      "Result of the notebook server's installation; null before the end of the installation, or without one.",
    jupyter_url:
      'Address of the notebook server with its token; null without a notebook server, and for an API key without the scope `rent`.',
    enable_jupyter: 'True if a notebook server was requested.',
    jupyter_error: 'Reason why the notebook server is missing; null if it is not missing.',
    is_favorite: 'True if the account marked the pod as a favorite.',
    template:
      'The template as it was when the pod was rented or last changed. To edit it, clients send the whole object.',
    executor: 'Node of the pod.',
    executor_id: 'Id of the node.',
    template_id: 'Id of the template; null for a Dockerfile.',
    user_id: 'Id of the account.',
    volume: 'The attached volume; null for none.',
    ssh_keys: 'SSH keys that may log in.',
    notice_period: 'Announced maintenance or removal of the node; null for none.',
    source: 'Kind of client that rented the pod, from the header X-Source.',
    client_version: 'Version of the client that rented the pod; null if it sent none.',
    created_by_api_key_id: 'Id of the API key that rented the pod; null for a session.',
    skip_add_agent_ssh_key: 'Always false: no key of the marketplace is added.',
    phase: 'Step within the status, for example `pulling` or `ready`; null at the end.',
    estimated_ready_seconds:
      'Expected seconds until the pod runs; null if the pod runs or there is no estimate.',
    eta_basis: 'Basis of the estimate; null without an estimate.',
    workspace_id: 'Always null: this marketplace has no workspaces.',
    cluster_id: 'Always null: this marketplace has no clusters.',
    cluster_name: 'Always null: this marketplace has no clusters.',
    enable_volume_encryption:
      'True if the volume of the pod is encrypted; always false at present.',
    volume_encryption_status: 'Always null, because volumes are not encrypted.',
    reason_code: 'Reason why the pod stopped, failed or was removed; null for a running pod.',
    message:
      'Reason why the pod does not run, or the progress of its image; null if there is nothing to report.',
    max_spend_usd: 'Limit in USD at which the pod is stopped; null for none.',
    idle_shutdown_minutes: 'Minutes without use after which the pod is stopped; null for none.',
    spent_usd: 'USD that the pod has cost so far, as in the ledger.',
  },
);

export const PodListItemResponse = z.object(podListShape).meta({ id: 'PodListItemResponse' });
export type PodListItemResponse = z.output<typeof PodListItemResponse>;

/** Returned by every route that changes a pod. */
export const PodResponse = z.object(podListShape).meta({ id: 'Pod' });

export const PodDetailResponse = z
  .object({
    ...podListShape,
    ...described(
      {
        executor_status: z.object(
          described(
            { logs: z.array(z.string()) },
            {
              logs: 'The `message` of the pod, for example the progress of its image; empty if there is none.',
            },
          ),
        ),
        last_event: AccountEvent.nullable(),
        backup_config: BackupConfig.nullable(),
        deleted_at: z.string().optional(),
      },
      {
        executor_status: "State of the node's work on the pod.",
        last_event: 'Last event of the pod; null for none.',
        backup_config: 'Backup schedule of the pod; null for none.',
        deleted_at: 'Time of the removal (UTC); present only for a deleted pod.',
      },
    ),
  })
  .meta({ id: 'PodDetailResponse' });
export type PodDetailResponse = z.output<typeof PodDetailResponse>;

export const PodDeletedResponse = z
  .object({ ...podListShape, ...described({ success: z.literal(true) }, { success: SUCCESS }) })
  .meta({ id: 'PodDeletedResponse' });

export const SshKeysAddedResponse = z
  .object({
    ...podListShape,
    ...described(
      { added: z.int(), already_present: z.int() },
      {
        added: 'Number of keys that were added.',
        already_present: 'Number of keys that the pod already had.',
      },
    ),
  })
  .meta({ id: 'SshKeysAddedResponse' });

const MAX_PAGE = 1_000_000;
const MAX_LIMIT = 100;
const DEFAULT_LIMIT = 20;

export const PodHistoryQuery = z
  .object(
    described(
      {
        page: withDefault(queryNumber(z.int().min(1).max(MAX_PAGE)), 1),
        limit: withDefault(queryNumber(z.int().min(1).max(MAX_LIMIT)), DEFAULT_LIMIT),
      },
      { page: PAGE, limit: 'Maximum number of pods per page, 1 to 100.' },
    ),
  )
  .meta({ example: { page: 1, limit: 20 } });
export type PodHistoryQuery = z.output<typeof PodHistoryQuery>;

/** The last state of a deleted pod, with the status DELETED. */
const PodTombstone = z
  .object({
    ...PodListItemResponse.shape,
    ...described({ deleted_at: NaiveTime }, { deleted_at: 'Time of the removal (UTC).' }),
  })
  .meta({ id: 'PodTombstone' });

export const PodHistoryResponse = z
  .object(
    described(
      {
        items: z.array(PodTombstone),
        total: z.int(),
        page: z.int(),
        limit: z.int(),
        has_next: z.boolean(),
      },
      {
        items: 'Deleted pods, newest first.',
        total: TOTAL,
        page: PAGE,
        limit: LIMIT,
        has_next: HAS_NEXT,
      },
    ),
  )
  .meta({ id: 'PodHistoryResponse' });
export type PodHistoryResponse = z.output<typeof PodHistoryResponse>;
