/** Requests and responses of the rental routes. */
import { z } from 'zod';
import type { FieldNames } from '../../platform/edge/field-names.ts';
import { displayName, Uuid } from '../../platform/wire.ts';
import { ExecutorDetailResponse, explanation } from '../executors/executor.schemas.ts';
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
    explain: z.boolean().nullish().meta({
      description: 'Adds `funnel` and `nearest` to a successful answer; a 409 always has them.',
    }),
  })
  .meta({ id: 'RentBySpecRequest' });
export type RentBySpecRequest = z.output<typeof RentBySpecRequest>;

export const RentBySpecQuery = z.object({
  explain: z.stringbool().optional().meta({ description: 'Same as `explain` in the body.' }),
});

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
    funnel: explanation.funnel.optional(),
    nearest: explanation.nearest.optional(),
  })
  .meta({ id: 'RentBySpecResponse' });
export type RentBySpecResponse = z.output<typeof RentBySpecResponse>;

const RENT_SYNONYMS = {
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

const ownOfSpec = Object.keys(RentBySpecRequest.shape).filter(
  (name) => !Object.hasOwn(RentExecutorRequest.shape, name),
);

export const RENT_FIELD_NAMES: FieldNames = {
  synonyms: RENT_SYNONYMS,
  elsewhere: Object.fromEntries(ownOfSpec.map((name) => [name, 'POST /executors/rent-by-spec'])),
};

export const RENT_BY_SPEC_FIELD_NAMES: FieldNames = {
  synonyms: {
    ...RENT_SYNONYMS,
    gpu: 'gpu_type',
    gpu_model: 'gpu_type',
    gpu_name: 'gpu_type',
    vram: 'min_vram_gb',
    vram_gb: 'min_vram_gb',
    cpus: 'min_cpus',
    cpu_count: 'min_cpus',
    ram: 'min_ram_gb',
    ram_gb: 'min_ram_gb',
    memory_gb: 'min_ram_gb',
    disk: 'min_disk_gb',
    disk_gb: 'min_disk_gb',
    download_mbps: 'min_download_mbps',
    price: 'max_price_per_gpu_hour',
    price_lte: 'max_price_per_gpu_hour',
    max_price: 'max_price_per_gpu_hour',
    max_price_per_gpu: 'max_price_per_gpu_hour',
    max_price_per_hour: 'max_price_per_gpu_hour',
    country_code: 'country',
    dind: 'docker_in_docker',
  },
};
