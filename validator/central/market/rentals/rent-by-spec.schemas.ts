/** What rent-by-spec takes and answers (contract 4.2). */
import { z } from 'zod';
import { ExecutorDetailResponse } from '../executors/executor.schemas.ts';
import { PodListItemResponse } from '../pods/pod.schemas.ts';
import { RentExecutorRequest } from './rental.schemas.ts';

const MAX_NAME = 200;
const Amount = z.number().min(0);
const Count = z.int().min(0);
const Name = z.string().trim().min(1).max(MAX_NAME);

/** No member has a default: the idempotency fingerprint covers what was sent. GB are 10^9 bytes. */
export const RentBySpecRequest = z
  .object({
    ...RentExecutorRequest.shape,
    /** Short type or full name. */
    gpu_type: Name.nullish(),
    /** Of each GPU. */
    min_vram_gb: Amount.nullish(),
    min_cpus: Count.nullish(),
    min_ram_gb: Amount.nullish(),
    /** Free on the node's disk. */
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

/** The part of the request that chooses. */
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
  /** Of the rental asked for. */
  price_per_hour: z.number(),
  download_mbps: z.number().nullable(),
  country_code: z.string().nullable(),
});
export type SpecAlternative = z.output<typeof SpecAlternative>;

/** A dry run has no pod. */
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
    /** Nodes that met the specification. */
    candidates: z.int(),
    /** The next of them. */
    alternatives_considered: z.array(SpecAlternative),
    /** Nodes that a rental was tried on. */
    attempts: z.int(),
  })
  .meta({ id: 'RentBySpecResponse' });
export type RentBySpecResponse = z.output<typeof RentBySpecResponse>;
