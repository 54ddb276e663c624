/** Requests and responses of the rental routes. */
import { z } from 'zod';
import { displayName, Uuid } from '../../platform/wire.ts';
import { ExecutorDetailResponse } from '../executors/executor.schemas.ts';
import { PodListItemResponse, podLimits } from '../pods/pod.schemas.ts';

const MAX_PORTS = 64;
const MAX_KEYS = 50;
const MAX_KEY_CHARS = 16_384;

const PublicKey = z.string().max(MAX_KEY_CHARS);

/** No member has a default, because the idempotency fingerprint covers the request as sent. Null means absent. */
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

const MAX_NAME = 200;
const Amount = z.number().min(0);
const Count = z.int().min(0);
const Name = z.string().trim().min(1).max(MAX_NAME);

/** No member has a default, because the idempotency fingerprint covers the request as sent. GB are 10^9 bytes. */
export const RentBySpecRequest = z
  .object({
    ...RentExecutorRequest.shape,
    gpu_type: Name.nullish(),
    min_vram_gb: Amount.nullish(),
    min_cpus: Count.nullish(),
    min_ram_gb: Amount.nullish(),
    /** Free space on the node's disk. */
    min_disk_gb: Amount.nullish(),
    min_download_mbps: Amount.nullish(),
    min_ports: Count.nullish(),
    max_price_per_gpu_hour: Amount.nullish(),
    /** Code or name. */
    country: Name.nullish(),
    docker_in_docker: z.boolean().nullish(),
    dry_run: z.boolean().nullish(),
  })
  .meta({ id: 'RentBySpecRequest' });
export type RentBySpecRequest = z.output<typeof RentBySpecRequest>;

/** Members of the request that select nodes. */
export type NodeSpec = Pick<
  RentBySpecRequest,
  | 'gpu_type'
  | 'gpu_count'
  | 'min_vram_gb'
  | 'min_cpus'
  | 'min_ram_gb'
  | 'min_disk_gb'
  | 'min_download_mbps'
  | 'min_ports'
  | 'max_price_per_gpu_hour'
  | 'country'
  | 'docker_in_docker'
>;

const SpecAlternative = z.object({
  id: z.uuid(),
  machine_name: z.string(),
  gpu_count: z.int(),
  available_gpu_count: z.int(),
  price_per_gpu: z.number(),
  /** Price of the requested rental. */
  price_per_hour: z.number(),
  download_mbps: z.number().nullable(),
  country_code: z.string().nullable(),
});
export type SpecAlternative = z.output<typeof SpecAlternative>;

export const RentBySpecResponse = z
  .object({
    success: z.literal(true),
    dry_run: z.boolean(),
    pod_id: z.uuid().nullable(),
    id: z.uuid().nullable(),
    pod: PodListItemResponse.nullable(),
    template_id: z.uuid().nullable(),
    price_per_hour: z.number(),
    selected_executor: ExecutorDetailResponse,
    /** Number of nodes that meet the specification. */
    candidates: z.int(),
    /** The next best nodes. */
    alternatives_considered: z.array(SpecAlternative),
    /** Number of nodes tried. */
    attempts: z.int(),
  })
  .meta({ id: 'RentBySpecResponse' });
export type RentBySpecResponse = z.output<typeof RentBySpecResponse>;
