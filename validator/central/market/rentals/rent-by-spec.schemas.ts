/** Request and response of a rental by specification. */
import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import type { FieldNames } from '../../platform/edge/field-names.ts';
import { EXAMPLE_IDS } from '../../platform/openapi/example-ids.ts';
import { SUCCESS } from '../../platform/openapi/field-texts.ts';
import { ExecutorDetailResponse, explanation } from '../executors/executor.schemas.ts';
import { PLACE_FILTER_TEXTS, placeFilters } from '../executors/node-filters.schemas.ts';
import { PodListItemResponse } from '../pods/pod.schemas.ts';
import { RENT_SYNONYMS, RentExecutorRequest } from './rental.schemas.ts';

const MAX_NAME = 200;
const Amount = z.number().min(0);
const Count = z.int().min(0);
const Name = z.string().trim().min(1).max(MAX_NAME);

/** No member has a default, because the idempotency fingerprint covers the request as sent. GB are 10^9 bytes. */
export const RentBySpecRequest = z
  .object({
    ...RentExecutorRequest.shape,
    ...described(
      {
        gpu_type: Name.nullish(),
        min_vram_gb: Amount.nullish(),
        min_cpus: Count.nullish(),
        min_ram_gb: Amount.nullish(),
        min_disk_gb: Amount.nullish(),
        min_download_mbps: Amount.nullish(),
        min_ports: Count.nullish(),
        min_reliability: z.number().min(0).max(1).nullish(),
        max_price_per_gpu_hour: Amount.nullish(),
        country: placeFilters.country.nullish(),
        region: placeFilters.region.nullish(),
        lat: placeFilters.lat.nullish(),
        lon: placeFilters.lon.nullish(),
        max_distance_mile: placeFilters.max_distance_mile.nullish(),
        docker_in_docker: z.boolean().nullish(),
        dry_run: z.boolean().nullish(),
        explain: z.boolean().nullish(),
      },
      {
        gpu_type: 'Short type (`H100`) or full name of the GPU; absent for any.',
        min_vram_gb: 'Smallest memory of each GPU in GB (10^9 bytes).',
        min_cpus: 'Smallest number of processors.',
        min_ram_gb: 'Smallest memory of the node in GB (10^9 bytes).',
        min_disk_gb: "Smallest free space on the node's disk in GB (10^9 bytes).",
        min_download_mbps: 'Smallest measured download speed in Mbit/s.',
        min_ports: 'Smallest number of free external ports.',
        min_reliability:
          'Smallest `reliability_score`, 0 to 1. Nodes without a score are left out.',
        max_price_per_gpu_hour: 'Highest price in USD per GPU and hour.',
        ...PLACE_FILTER_TEXTS,
        docker_in_docker: 'True for nodes on which containers can run inside the pod.',
        dry_run: 'True selects a node and rents nothing.',
        explain: 'Adds `funnel` and `nearest` to a successful answer; a 409 always has them.',
      },
    ),
  })
  .meta({
    id: 'RentBySpecRequest',
    example: {
      pod_name: 'training',
      template_id: EXAMPLE_IDS.template,
      gpu_type: 'H100',
      gpu_count: 1,
      max_price_per_gpu_hour: 10,
      dry_run: true,
    },
  });
export type RentBySpecRequest = z.output<typeof RentBySpecRequest>;

export const RentBySpecQuery = z
  .object(
    described(
      { explain: z.stringbool().optional() },
      { explain: 'Same as `explain` in the body.' },
    ),
  )
  .meta({ example: { explain: true } });

/** Members of the request that select nodes. */
export const NODE_SPEC_FIELDS = [
  'gpu_type',
  'gpu_count',
  'min_vram_gb',
  'min_cpus',
  'min_ram_gb',
  'min_disk_gb',
  'min_download_mbps',
  'min_ports',
  'min_reliability',
  'max_price_per_gpu_hour',
  'country',
  'region',
  'lat',
  'lon',
  'max_distance_mile',
  'docker_in_docker',
] as const satisfies readonly (keyof RentBySpecRequest)[];

export type NodeSpec = Pick<RentBySpecRequest, (typeof NODE_SPEC_FIELDS)[number]>;

const SpecAlternative = z.object(
  described(
    {
      id: z.uuid(),
      machine_name: z.string(),
      gpu_count: z.int(),
      available_gpu_count: z.int(),
      price_per_gpu: z.number(),
      price_per_hour: z.number(),
      download_mbps: z.number(),
      country_code: z.string(),
    },
    {
      id: 'Id of the node.',
      machine_name: 'Full name of its GPUs.',
      gpu_count: 'Number of GPUs.',
      available_gpu_count: 'Number of free GPUs.',
      price_per_gpu: 'USD per GPU and hour.',
      price_per_hour: 'USD per hour for the requested rental.',
      download_mbps: 'Measured download speed in Mbit/s; 0 before the first measurement.',
      country_code: 'ISO 3166-1 alpha-2 code of the country; empty if unknown.',
    },
  ),
);
export type SpecAlternative = z.output<typeof SpecAlternative>;

export const RentBySpecResponse = z
  .object(
    described(
      {
        success: z.literal(true),
        dry_run: z.boolean(),
        pod_id: z.uuid().nullable(),
        id: z.uuid().nullable(),
        pod: PodListItemResponse.nullable(),
        template_id: z.uuid().nullable(),
        price_per_hour: z.number(),
        selected_executor: ExecutorDetailResponse,
        candidates: z.int(),
        alternatives_considered: z.array(SpecAlternative),
        attempts: z.int(),
        funnel: explanation.funnel.optional(),
        nearest: explanation.nearest.optional(),
      },
      {
        success: SUCCESS,
        dry_run: 'True if nothing was rented.',
        pod_id: 'Id of the pod; null after a dry run.',
        id: 'Id of the pod; null after a dry run.',
        pod: 'The pod; null after a dry run.',
        template_id: 'Id of the template; null for a Dockerfile.',
        price_per_hour: 'USD per hour of the rental.',
        selected_executor: 'The node that was chosen.',
        candidates: 'Number of nodes that meet the specification.',
        alternatives_considered: 'The next best nodes.',
        attempts: 'Number of nodes that were tried.',
        funnel: 'Number of nodes that each constraint left; present with `explain`.',
        nearest: 'Nodes nearest to the first constraint without a match; present with `explain`.',
      },
    ),
  )
  .meta({ id: 'RentBySpecResponse' });
export type RentBySpecResponse = z.output<typeof RentBySpecResponse>;

const ownOfSpec = Object.keys(RentBySpecRequest.shape).filter(
  (name) => !Object.hasOwn(RentExecutorRequest.shape, name),
);

/** Misspelt or misplaced names in POST /executors/{id}/rent: synonyms, and members of a rental by specification. */
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
    region_name: 'region',
    latitude: 'lat',
    longitude: 'lon',
    max_distance: 'max_distance_mile',
    max_distance_miles: 'max_distance_mile',
    dind: 'docker_in_docker',
  },
};
