/** Requests that change a pod. */
import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { PublicKeyText } from '../../accounts/ssh-keys/ssh-key.schemas.ts';
import type { FieldNames } from '../../platform/edge/field-names.ts';
import { EXAMPLE_IDS } from '../../platform/openapi/example-ids.ts';
import { displayName, optional, Uuid, usdAmount } from '../../platform/wire.ts';
import { templateChanges } from '../templates/template.schemas.ts';
import { PodDetailResponse } from './pod.schemas.ts';

const SMALLEST_USD = 0.000001;
const MAX_SPEND_USD = 1_000_000;
const MAX_IDLE_MINUTES = 43_200;

/** Limits on the cost and the idle time of a pod. */
export const podLimits = described(
  {
    max_spend_usd: usdAmount({ min: SMALLEST_USD, max: MAX_SPEND_USD }).nullish(),
    idle_shutdown_minutes: z.int().min(1).max(MAX_IDLE_MINUTES).nullish(),
  },
  {
    max_spend_usd:
      'Limit in USD at which the pod is stopped; null for none. At least the price of one minute, which is the minimum charge.',
    idle_shutdown_minutes:
      'Minutes without use after which the pod is stopped, 1 to 43200; null for none.',
  },
);

/** Changes of a pod. Absent members are unchanged; null removes a limit. */
export const PodUpdateRequest = z
  .object({
    ...podLimits,
    ...described(
      { pod_name: optional(displayName(100)), termination_hours: z.number().nullish() },
      {
        pod_name: 'New name, 1 to 100 characters; absent leaves it unchanged.',
        termination_hours:
          'Hours after the rental at which the pod is removed, 1 to 720; null for never; absent leaves it unchanged.',
      },
    ),
  })
  .meta({
    id: 'PodUpdateRequest',
    example: { pod_name: 'training-2', max_spend_usd: 100, idle_shutdown_minutes: 60 },
  });
export type PodUpdateRequest = z.output<typeof PodUpdateRequest>;

export const POD_UPDATE_FIELD_NAMES: FieldNames = {
  synonyms: {
    name: 'pod_name',
    budget: 'max_spend_usd',
    max_spend: 'max_spend_usd',
    spend_limit: 'max_spend_usd',
    idle_minutes: 'idle_shutdown_minutes',
    hours: 'termination_hours',
    ttl: 'termination_hours',
    ttl_hours: 'termination_hours',
  },
  echoed: Object.keys(PodDetailResponse.shape),
};

/** Any member of a template. Read-only and unknown members are ignored, so that clients may send a whole template. */
export const CustomTemplateRequest = z.object(templateChanges).meta({
  id: 'CustomTemplateRequest',
  example: { environment: { HF_HOME: '/workspace/hf' }, internal_ports: [22, 8000] },
});

export const SwitchTemplatePodRequest = z
  .object(described({ template_id: Uuid }, { template_id: 'Id of the new template.' }))
  .meta({ id: 'SwitchTemplatePodRequest', example: { template_id: EXAMPLE_IDS.template } });

export const RebootPodRequest = z
  .object(
    described(
      { volume_id: Uuid.nullish() },
      { volume_id: 'Id of the volume for the pod; absent or null leaves it unchanged.' },
    ),
  )
  .meta({ id: 'RebootPodRequest', example: {} });

const MAX_KEYS_PER_REQUEST = 20;

export const AddSshKeysRequest = z
  .object(
    described(
      {
        ssh_key_ids: z.array(Uuid).max(MAX_KEYS_PER_REQUEST).nullish(),
        public_keys: z.array(PublicKeyText).max(MAX_KEYS_PER_REQUEST).nullish(),
      },
      {
        ssh_key_ids: "Ids of the account's keys, at most 20.",
        public_keys:
          'Public keys in OpenSSH format, at most 20. Both lists together must have 1 to 20 keys.',
      },
    ),
  )
  .refine(
    ({ ssh_key_ids, public_keys }) => {
      const count = (ssh_key_ids?.length ?? 0) + (public_keys?.length ?? 0);
      return count >= 1 && count <= MAX_KEYS_PER_REQUEST;
    },
    { message: `Between 1 and ${MAX_KEYS_PER_REQUEST} keys` },
  )
  .meta({ id: 'AddMultipleSshKeysToPodRequest', example: { ssh_key_ids: [EXAMPLE_IDS.sshKey] } });
export type AddSshKeysRequest = z.output<typeof AddSshKeysRequest>;

export const InstallJupyterRequest = z
  .object(
    described(
      { jupyter_internal_port: z.int().min(1).max(65_535) },
      {
        jupyter_internal_port:
          'Port of the container for the notebook server; the port must have an external port.',
      },
    ),
  )
  .meta({ id: 'InstallJupyterRequest', example: { jupyter_internal_port: 8000 } });

export const ScheduleRemovalRequest = z
  .object(
    described(
      { removal_scheduled_at: z.string().max(64) },
      {
        removal_scheduled_at:
          'Time of the removal, ISO 8601 with `Z` or an offset, 1 to 720 hours ahead.',
      },
    ),
  )
  .meta({
    id: 'ScheduleRemovalRequest',
    example: { removal_scheduled_at: '2027-01-20T18:00:00+01:00' },
  });
