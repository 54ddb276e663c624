/** Requests and responses of the pod routes. */
import { z } from 'zod';
import { PublicKeyText } from '../../accounts/ssh-keys/ssh-key.schemas.ts';
import { BackupConfig } from '../../backups/backup.schemas.ts';
import { AccountEvent } from '../../delivery/events/event.schemas.ts';
import {
  displayName,
  NaiveTime,
  optional,
  queryNumber,
  Uuid,
  usdAmount,
  withDefault,
} from '../../platform/wire.ts';
import { ExecutorLocation, NodeFilterQuery } from '../executors/executor.schemas.ts';
import { NoticePeriod } from '../executors/notice-period.ts';
import { ExecutorSpecs } from '../executors/specs.ts';
import { templateChanges } from '../templates/template.schemas.ts';
import { Volume } from '../volumes/volume.schemas.ts';
import { WIRE_PHASES, WIRE_STATUSES } from './pod.state.ts';

export const PodParams = z.object({ id: Uuid });

export const PodListQuery = NodeFilterQuery.extend({ only_favorites: z.stringbool().optional() });
export type PodListQuery = z.output<typeof PodListQuery>;

export const PodDetailQuery = z.object({ include_deleted: z.stringbool().optional() });

/** The template as it was when the pod was rented. Clients send the whole object back to edit it. */
const PodTemplate = z.looseObject({
  id: z.string(),
  name: z.string(),
  docker_image: z.string(),
  docker_image_tag: z.string(),
});
export type PodTemplate = z.output<typeof PodTemplate>;

const PodExecutor = z.object({
  id: z.uuid(),
  huid: z.string(),
  machine_name: z.string(),
  price_per_gpu: z.number(),
  executor_ip_address: z.string(),
  validator_hotkey: z.string().nullable(),
  gpu_count: z.int(),
  specs: ExecutorSpecs.nullable(),
  active: z.boolean(),
  location: ExecutorLocation.nullable(),
  uptime_in_minutes: z.int().nullable(),
  simulated: z.boolean(),
  disk_health_ok: z.boolean().nullable().optional(),
});

/** `id` is null for a key that is not one of the account's. */
export const PodSshKey = z.object({
  id: z.string().nullable(),
  name: z.string(),
  public_key: z.string(),
});
export type PodSshKey = z.output<typeof PodSshKey>;

const podListShape = {
  id: z.uuid(),
  pod_name: z.string(),
  status: z.enum(WIRE_STATUSES),
  ssh_connect_cmd: z.string().nullable(),
  /** External port by internal port. */
  ports_mapping: z.record(z.string(), z.int()),
  gpu_name: z.string(),
  /** A string, because clients expect one. */
  gpu_count: z.string(),
  cpu_name: z.string(),
  cpu_count: z.int().nullable(),
  /** KiB. */
  ram_total: z.int(),
  /** USD per hour for all GPUs, fixed when the pod was rented. */
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
  template: PodTemplate,
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
  /** Why the pod does not run, or the progress of its image; null if there is nothing to report. */
  message: z.string().nullable(),
  max_spend_usd: z.number().nullable(),
  idle_shutdown_minutes: z.int().nullable(),
  spent_usd: z.number(),
};

export const PodListItemResponse = z.object(podListShape).meta({ id: 'PodListItemResponse' });
export type PodListItemResponse = z.output<typeof PodListItemResponse>;

/** Returned by every route that changes a pod. */
export const PodResponse = z.object(podListShape).meta({ id: 'Pod' });

export const PodDetailResponse = z
  .object({
    ...podListShape,
    executor_status: z.object({ logs: z.array(z.string()) }),
    last_event: AccountEvent.nullable(),
    backup_config: BackupConfig.nullable(),
    /** Present only for a deleted pod. */
    deleted_at: z.string().optional(),
  })
  .meta({ id: 'PodDetailResponse' });
export type PodDetailResponse = z.output<typeof PodDetailResponse>;

export const PodDeletedResponse = z
  .object({ ...podListShape, success: z.literal(true) })
  .meta({ id: 'PodDeletedResponse' });

const SMALLEST_USD = 0.000001;
const MAX_SPEND_USD = 1_000_000;
const MAX_IDLE_MINUTES = 43_200;

/** Limits on the cost and the idle time of a pod. */
export const podLimits = {
  max_spend_usd: usdAmount({ min: SMALLEST_USD, max: MAX_SPEND_USD }).nullish(),
  idle_shutdown_minutes: z.int().min(1).max(MAX_IDLE_MINUTES).nullish(),
};

/** Absent members are unchanged; null removes a limit. */
export const PodUpdateRequest = z
  .object({
    pod_name: optional(displayName(100)),
    ...podLimits,
    termination_hours: z.number().nullish(),
  })
  .meta({ id: 'PodUpdateRequest' });
export type PodUpdateRequest = z.output<typeof PodUpdateRequest>;

/** Any member of a template. Read-only and unknown members are ignored, so a template can be sent back whole. */
export const CustomTemplateRequest = z
  .object(templateChanges)
  .meta({ id: 'CustomTemplateRequest' });

export const SwitchTemplatePodRequest = z
  .object({ template_id: Uuid })
  .meta({ id: 'SwitchTemplatePodRequest' });

export const RebootPodRequest = z
  .object({ volume_id: Uuid.nullish() })
  .meta({ id: 'RebootPodRequest' });

const MAX_KEYS_PER_REQUEST = 20;

export const AddSshKeysRequest = z
  .object({
    ssh_key_ids: z.array(Uuid).max(MAX_KEYS_PER_REQUEST).nullish(),
    public_keys: z.array(PublicKeyText).max(MAX_KEYS_PER_REQUEST).nullish(),
  })
  .refine(
    ({ ssh_key_ids, public_keys }) => {
      const count = (ssh_key_ids?.length ?? 0) + (public_keys?.length ?? 0);
      return count >= 1 && count <= MAX_KEYS_PER_REQUEST;
    },
    { message: `Between 1 and ${MAX_KEYS_PER_REQUEST} keys` },
  )
  .meta({ id: 'AddMultipleSshKeysToPodRequest' });
export type AddSshKeysRequest = z.output<typeof AddSshKeysRequest>;

export const SshKeysAddedResponse = z
  .object({ ...podListShape, added: z.int(), already_present: z.int() })
  .meta({ id: 'SshKeysAddedResponse' });

export const InstallJupyterRequest = z
  .object({ jupyter_internal_port: z.int().min(1).max(65_535) })
  .meta({ id: 'InstallJupyterRequest' });

export const ScheduleRemovalRequest = z
  .object({ removal_scheduled_at: z.string().max(64) })
  .meta({ id: 'ScheduleRemovalRequest' });

const MAX_PAGE = 1_000_000;
const MAX_LIMIT = 100;
const DEFAULT_LIMIT = 20;

export const PodHistoryQuery = z.object({
  page: withDefault(queryNumber(z.int().min(1).max(MAX_PAGE)), 1),
  limit: withDefault(queryNumber(z.int().min(1).max(MAX_LIMIT)), DEFAULT_LIMIT),
});
export type PodHistoryQuery = z.output<typeof PodHistoryQuery>;

/** The last state of a deleted pod, with the status DELETED. */
const PodTombstone = z
  .object({ ...PodListItemResponse.shape, deleted_at: NaiveTime })
  .meta({ id: 'PodTombstone' });

export const PodHistoryResponse = z
  .object({
    items: z.array(PodTombstone),
    /** Pods on all pages. */
    total: z.int(),
    page: z.int(),
    limit: z.int(),
    has_next: z.boolean(),
  })
  .meta({ id: 'PodHistoryResponse' });
export type PodHistoryResponse = z.output<typeof PodHistoryResponse>;
