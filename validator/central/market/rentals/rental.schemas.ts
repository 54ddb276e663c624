/** What renting takes and answers (contract 4.1). */
import { z } from 'zod';
import { displayName, Uuid } from '../../platform/wire.ts';
import { PodListItemResponse, podLimits } from '../pods/pod.schemas.ts';

const MAX_PORTS = 64;
const MAX_KEYS = 50;
const MAX_KEY_CHARS = 16_384;

const PublicKey = z.string().max(MAX_KEY_CHARS);

/** No member has a default: the idempotency fingerprint covers what was sent. Null means absent. */
export const RentExecutorRequest = z
  .object({
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
    ...podLimits,
  })
  .meta({ id: 'RentExecutorRequest' });
export type RentExecutorRequest = z.output<typeof RentExecutorRequest>;

export const RentExecutorResponse = z
  .object({ ...PodListItemResponse.shape, success: z.literal(true), pod_id: z.uuid() })
  .meta({ id: 'RentExecutorResponse' });
export type RentExecutorResponse = z.output<typeof RentExecutorResponse>;
