/** Requests and responses of the rental routes. */

import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { EXAMPLE_IDS } from '../../platform/openapi/example-ids.ts';
import { SUCCESS } from '../../platform/openapi/field-texts.ts';
import { displayName, Uuid } from '../../platform/wire.ts';
import { PodListItemResponse } from '../pods/pod.schemas.ts';
import { podLimits } from '../pods/pod-change.schemas.ts';

const MAX_PORTS = 64;
const MAX_KEYS = 50;
const MAX_KEY_CHARS = 16_384;

const PublicKey = z.string().max(MAX_KEY_CHARS);

/** No member has a default, because the idempotency fingerprint covers the request as sent. Null means absent. */
export const RentExecutorRequest = z
  .object({
    ...podLimits,
    ...described(
      {
        pod_name: displayName(100),
        template_id: Uuid.nullish(),
        dockerfile_content: z.string().max(65_536).nullish(),
        user_public_key: z.union([z.array(PublicKey).max(MAX_KEYS), PublicKey]).nullish(),
        volume_id: Uuid.nullish(),
        initial_port_count: z.int().min(0).max(MAX_PORTS).nullish(),
        gpu_count: z.int().min(1).nullish(),
        termination_hours: z.number().nullish(),
        enable_jupyter: z.boolean().nullish(),
        enable_volume_encryption: z.boolean().nullish(),
        skip_add_agent_ssh_key: z.boolean().nullish(),
        backup_log_id: Uuid.nullish(),
        restore_path: z.string().max(4_096).nullish(),
        secret_names: z.array(z.string().max(200)).max(100).nullish(),
      },
      {
        pod_name: 'Name of the pod, 1 to 100 characters. Several pods may have the same name.',
        template_id:
          "Id of the template. If both this and `dockerfile_content` are absent, the account's default template is used.",
        dockerfile_content:
          'Dockerfile that the node builds, instead of a template; at most 64 KiB.',
        user_public_key: 'SSH key or keys to install; absent for all keys of the account.',
        volume_id: 'Id of a volume, mounted at `/mnt`. A volume has at most one pod at a time.',
        initial_port_count:
          'Smallest number of external ports, 0 to 64. The ports of the template are always included; if absent, there are no others.',
        gpu_count: 'Number of GPUs; absent for all GPUs of the node.',
        termination_hours:
          "Hours after which the pod is removed, 1 to 720; if absent, the account's default; without a default, never.",
        enable_jupyter: 'True installs a notebook server when the pod runs.',
        enable_volume_encryption:
          'True requests an encrypted volume. Volumes are not encrypted, so the rental is refused with 400 `bad_request`.',
        skip_add_agent_ssh_key:
          'Accepted for compatibility; has no effect, because no key of the marketplace is added.',
        backup_log_id:
          'Id of a backup that is restored before the pod runs; only together with `restore_path`.',
        restore_path:
          'Folder of the container that receives the backup; only together with `backup_log_id`.',
        secret_names:
          "Names of the account's secrets, which are files `/run/secrets/<name>` in the pod; at most 32.",
      },
    ),
  })
  .meta({
    id: 'RentExecutorRequest',
    example: {
      pod_name: 'training',
      template_id: EXAMPLE_IDS.template,
      gpu_count: 1,
      termination_hours: 12,
      max_spend_usd: 50,
    },
  });
export type RentExecutorRequest = z.output<typeof RentExecutorRequest>;

export const RentExecutorResponse = z
  .object({
    ...PodListItemResponse.shape,
    ...described(
      { success: z.literal(true), pod_id: z.uuid() },
      { success: SUCCESS, pod_id: 'Id of the pod, the same as `id`.' },
    ),
  })
  .meta({ id: 'RentExecutorResponse' });
export type RentExecutorResponse = z.output<typeof RentExecutorResponse>;

/** Names of other interfaces for members of a rental, with the name in this interface. */
export const RENT_SYNONYMS = {
  gpus: 'gpu_count',
  num_gpus: 'gpu_count',
  template: 'template_id',
  docker_image: 'template_id',
  dockerfile: 'dockerfile_content',
  ssh_key: 'user_public_key',
  ssh_keys: 'user_public_key',
  public_key: 'user_public_key',
  volume: 'volume_id',
  ports: 'initial_port_count',
  port_count: 'initial_port_count',
  hours: 'termination_hours',
  ttl: 'termination_hours',
  ttl_hours: 'termination_hours',
  jupyter: 'enable_jupyter',
  budget: 'max_spend_usd',
  max_spend: 'max_spend_usd',
  spend_limit: 'max_spend_usd',
  idle_minutes: 'idle_shutdown_minutes',
  backup_id: 'backup_log_id',
  secrets: 'secret_names',
};
