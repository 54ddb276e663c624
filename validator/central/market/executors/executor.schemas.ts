/** Requests and responses of the public node routes. */

import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { EXAMPLE_IDS } from '../../platform/openapi/example-ids.ts';
import { queryNumber, Uuid } from '../../platform/wire.ts';
import { ETA_BASES } from './launch-estimate.ts';
import { NoticePeriod } from './notice-period.ts';
import { ExecutorSpecs } from './specs.ts';

/** Largest page of GET /executors. Older clients request exactly this size. */
export const MAX_PAGE_SIZE = 1_000;

export const ExecutorParams = z.object({ executor_uuid: Uuid });

const PlaceName = z.string().trim().min(1).max(200);

/** Members of a request that select nodes by their place, and their descriptions. */
export const placeFilters = {
  country: PlaceName,
  region: PlaceName,
  lat: z.number().min(-90).max(90),
  lon: z.number().min(-180).max(180),
  max_distance_mile: z.number().min(0),
};
export const PLACE_FILTER_TEXTS = {
  country: 'Country of the node: ISO 3166-1 code or English name, ignoring case.',
  region:
    'Region of the node as its provider entered it: code (`BE`), code with the country (`DE-BE`) or name, ignoring case.',
  lat: 'Latitude of the client in degrees; needed with `max_distance_mile`.',
  lon: 'Longitude of the client in degrees; needed with `max_distance_mile`.',
  max_distance_mile:
    'Largest distance of the node from `lat` and `lon` in miles. Nodes without coordinates are left out.',
};

/** Filters of GET /executors and GET /pods. */
export const NodeFilterQuery = z.object(
  described(
    {
      machine_names: z.string().max(4_000).optional(),
      price_lte: queryNumber(z.number()).optional(),
      price_gte: queryNumber(z.number()).optional(),
      gpu_count_lte: queryNumber(z.int()).optional(),
      gpu_count_gte: queryNumber(z.int()).optional(),
      country: placeFilters.country.optional(),
      region: placeFilters.region.optional(),
      lat: queryNumber(placeFilters.lat).optional(),
      lon: queryNumber(placeFilters.lon).optional(),
      max_distance_mile: queryNumber(placeFilters.max_distance_mile).optional(),
      bookmarked: z.stringbool().optional(),
      machine_request_id: z.string().max(100).toLowerCase().optional(),
      collateral_deposited: z.stringbool().optional(),
    },
    {
      machine_names:
        'Full GPU names as in `GET /machines`, separated by commas; a node must have one of them.',
      price_lte: 'Highest price in USD per GPU and hour.',
      price_gte: 'Lowest price in USD per GPU and hour.',
      gpu_count_lte: 'Largest number of free GPUs.',
      gpu_count_gte: 'Smallest number of free GPUs.',
      ...PLACE_FILTER_TEXTS,
      bookmarked: "True for the account's bookmarked nodes only; it needs a credential.",
      machine_request_id: 'Id of a machine request: only the node that fulfils it.',
      collateral_deposited: 'True selects only nodes with a deposit of their provider.',
    },
  ),
);
export type NodeFilterQuery = z.output<typeof NodeFilterQuery>;

export const ExecutorListQuery = NodeFilterQuery.extend(
  described(
    {
      page: queryNumber(z.int().min(1)).optional(),
      size: queryNumber(z.int().min(1).max(MAX_PAGE_SIZE)).optional(),
      view: z.literal('summary').optional(),
      min_download_mbps: queryNumber(z.number().min(0)).optional(),
      nvlink: z.stringbool().optional(),
      available: z.stringbool().optional(),
      sort: z.enum(['price', 'reliability']).optional(),
      explain: z.stringbool().optional(),
    },
    {
      page: 'Number of the page, from 1; absent for the first.',
      size: 'Maximum number of nodes per page, 1 to 1000; absent for 1000.',
      view: '`summary` omits `specs`.',
      min_download_mbps:
        'Smallest measured download speed in Mbit/s. Nodes that were never measured are left out.',
      nvlink: 'True selects only nodes whose cards are all connected by NVLink.',
      sort: '`price` (the default): cheapest first. `reliability`: highest `reliability_score` first, nodes without one last, then as by price.',
      available: 'Accepted and ignored: every listed node is available.',
      explain: 'True returns an ExplainedExecutorList instead of the array.',
    },
  ),
).meta({ example: { price_lte: 10, gpu_count_gte: 1, size: 100, view: 'summary' } });
export type ExecutorListQuery = z.output<typeof ExecutorListQuery>;

/** A known location. Country and code are never null, because clients call string methods on both. */
export const ExecutorLocation = z
  .object(
    described(
      {
        country: z.string(),
        country_code: z.string(),
        region: z.string().nullable(),
        region_name: z.string().nullable(),
        city: z.string().nullable(),
        zip: z.string().nullable(),
        lat: z.number().nullable(),
        lon: z.number().nullable(),
        timezone: z.string().nullable(),
      },
      {
        country: 'Name of the country.',
        country_code: 'ISO 3166-1 alpha-2 code of the country.',
        region: 'Code of the region: ISO 3166-2 without the country; null if unknown.',
        region_name: 'Name of the region; null if unknown.',
        city: 'Name of the city; null if unknown.',
        zip: 'Postal code; null if unknown.',
        lat: 'Latitude in degrees; null if unknown.',
        lon: 'Longitude in degrees; null if unknown.',
        timezone: 'Name in the IANA time zone database; null if unknown.',
      },
    ),
  )
  .meta({ id: 'ExecutorLocation' });
export type ExecutorLocation = z.output<typeof ExecutorLocation>;

export const LocationState = z.enum(['entered', 'confirmed', 'contradicted']).nullable().meta({
  description:
    'Result for the place that the provider entered: `entered` (not compared yet, or the evidence does not decide), `confirmed` or `contradicted` by the evidence; null if none was entered. A contradicted place is not shown.',
});

export const ExecutorDetailResponse = z
  .object(
    described(
      {
        id: z.uuid(),
        huid: z.string(),
        machine_name: z.string(),
        gpu_type: z.string(),
        price_per_gpu: z.number(),
        price_per_hour: z.number(),
        gpu_count: z.int(),
        available_gpu_count: z.int(),
        min_gpu_count_for_rental: z.int().nullable(),
        executor_ip_address: z.string(),
        status: z.string(),
        active: z.boolean(),
        tier: z.enum(['secure', 'spot']),
        driver_version: z.string().nullable(),
        max_cuda_version: z.number().nullable(),
        effective_upload_speed_mbps: z.number().nullable(),
        effective_download_speed_mbps: z.number().nullable(),
        location: ExecutorLocation.nullable(),
        specs: ExecutorSpecs.optional(),
        reliability_score: z.number().nullable(),
        uptime_in_minutes: z.int().nullable(),
        miner_hotkey: z.string(),
        validator_hotkey: z.string().nullable(),
        provider_id: z.string(),
        collateral_deposited: z.boolean(),
        ncu_profiling_enabled: z.boolean().nullable(),
        pending_price_per_hour: z.number().nullable(),
        price_change_effective_date: z.string().nullable(),
        is_bookmarked: z.boolean().optional(),
        machine_request_id: z.string().nullable().optional(),
        notice_period: NoticePeriod.nullable(),
        nvlink: z.boolean().nullable(),
        interconnect: z.string().nullable(),
        p2p: z.boolean().nullable(),
        location_check: LocationState,
        simulated: z.boolean(),
      },
      {
        id: 'Id of the node.',
        huid: 'Readable name, derived from the id.',
        machine_name: 'Full name of its GPUs, as the driver reports it.',
        gpu_type: 'Short type of its GPUs, for example `H100`.',
        price_per_gpu: 'USD per GPU and hour.',
        price_per_hour: 'USD per hour for all GPUs of the node.',
        gpu_count: 'Number of GPUs.',
        available_gpu_count: 'Number of free GPUs.',
        min_gpu_count_for_rental:
          'Smallest number of GPUs that a rental may take; null if only the whole node can be rented.',
        executor_ip_address: 'Public IP address of the node.',
        status: 'Always `available`, because only rentable nodes are listed.',
        active: 'Always true.',
        tier: 'Tier of the node; this marketplace has `secure` nodes only.',
        driver_version: 'Version of the GPU driver; null if the node reports none.',
        max_cuda_version:
          'Highest CUDA version that the driver supports; null if the node reports none.',
        effective_upload_speed_mbps:
          'Upload speed in Mbit/s that a validator measured; null before the first measurement.',
        effective_download_speed_mbps:
          'Download speed in Mbit/s that a validator measured; null before the first measurement.',
        location: 'Place of the node; null if the country is unknown.',
        specs: 'Hardware as the agent measured it; absent with `view=summary`.',
        reliability_score:
          'Reliability from 0 to 1 over 30 days; null if the node was observed for less than a day.',
        uptime_in_minutes:
          'Minutes for which every check has reached the node; null before it first passed, and while it is unreachable.',
        miner_hotkey: 'ss58 of the provider.',
        validator_hotkey: 'ss58 of the validator with the last verdict; null before the first.',
        provider_id: 'Id of the provider.',
        collateral_deposited: 'True if the provider deposited collateral.',
        ncu_profiling_enabled:
          'True if GPU performance counters can be read in pods. Always null: it is not measured.',
        pending_price_per_hour: 'Always null: a new price applies to new rentals at once.',
        price_change_effective_date: 'Always null: a new price applies to new rentals at once.',
        is_bookmarked: 'True if the account bookmarked the node; present only with a credential.',
        machine_request_id:
          "Id of the account's machine request that the node fulfils, null for none; present only with a credential.",
        notice_period: 'Announced maintenance or removal; null for none.',
        nvlink: 'True if NVLink connects every pair of cards; null if unknown.',
        interconnect:
          '`NVLink`, or the farthest PCIe connection of two cards (`PIX` to `SYS`); null if unknown or with one card.',
        p2p: "True if the cards can read each other's memory. Always null: it is not measured.",
        location_check:
          'How the place was obtained: `entered` by the provider, `confirmed` by evidence, or `contradicted` by it; null if none was entered. A contradicted place is not shown.',
        simulated: 'True if the GPUs are simulated, as in a demonstration.',
      },
    ),
  )
  .meta({ id: 'ExecutorDetailResponse' });
export type ExecutorDetailResponse = z.output<typeof ExecutorDetailResponse>;

const ConstraintValue = z.union([z.string(), z.number(), z.boolean()]);

/** Members of answers that explain which constraint left how many nodes. */
export const explanation = {
  funnel: z
    .array(
      z.object({
        constraint: z.string().meta({ description: 'Name of the constraint in the request.' }),
        remaining: z.int().meta({
          description: 'Number of nodes that meet this constraint and all earlier ones.',
        }),
      }),
    )
    .meta({
      description:
        'What each constraint left, in order. The first entry counts the nodes that can be rented now.',
    }),
  nearest: z
    .array(
      z.object({
        constraint: z.string().meta({ description: 'The first constraint that left no node.' }),
        requested: ConstraintValue.meta({
          description: 'Value in the request; `all` for the GPUs of a whole node.',
        }),
        offered: ConstraintValue.meta({
          description: 'Value that accepts this node; `unknown` if the node does not report it.',
        }),
        executor_id: z.uuid().meta({ description: 'Id of the node.' }),
      }),
    )
    .meta({
      description:
        'Up to 3 nodes that the first constraint without a match rejected, the nearest first. Empty if nodes are left.',
    }),
};

export const ExplainedExecutorList = z
  .object({
    ...explanation,
    ...described(
      { executors: z.array(ExecutorDetailResponse), without_location: z.int().nullable() },
      {
        executors: 'Nodes that meet all constraints.',
        without_location:
          'Number of nodes without a location, if a filter by place left no node; otherwise null.',
      },
    ),
  })
  .meta({ id: 'ExplainedExecutorList' });

export const ExecutorCountResponse = z.object(
  described(
    { count: z.int() },
    { count: 'Number of nodes with a free GPU that can be rented now.' },
  ),
);

export const TotalCountExecutorResponse = z
  .object(
    described(
      { total_count: z.int() },
      { total_count: 'Number of all nodes, rented ones included.' },
    ),
  )
  .meta({ id: 'TotalCountExecutorResponse' });

export const ExecutorStatsResponse = z
  .object(
    described(
      {
        machine_name: z.string(),
        gpu_type: z.string(),
        total_executor_count: z.int(),
        rented_executor_count: z.int(),
        available_executor_count: z.int(),
        total_gpu_count: z.int(),
        rented_gpu_count: z.int(),
        available_gpu_count: z.int(),
        min_price_per_gpu: z.number(),
        avg_price_per_gpu: z.number(),
        max_price_per_gpu: z.number(),
        rental_rate: z.number(),
      },
      {
        machine_name: 'Full name of the GPU.',
        gpu_type: 'Short type of the GPU.',
        total_executor_count: 'Number of nodes with this GPU.',
        rented_executor_count: 'Number of these nodes without a free GPU.',
        available_executor_count: 'Number of these nodes that can be rented.',
        total_gpu_count: 'Number of these GPUs.',
        rented_gpu_count: 'Number of these GPUs that are rented.',
        available_gpu_count: 'Number of these GPUs that are free.',
        min_price_per_gpu: 'Lowest price of a node in USD per GPU and hour.',
        avg_price_per_gpu: 'Mean price of these nodes in USD per GPU and hour.',
        max_price_per_gpu: 'Highest price of a node in USD per GPU and hour.',
        rental_rate: 'Fraction of the GPUs that is rented, 0 to 1.',
      },
    ),
  )
  .meta({ id: 'ExecutorStatsResponse' });
export type ExecutorStatsResponse = z.output<typeof ExecutorStatsResponse>;

export const ReliabilityResponse = z
  .object(
    described(
      {
        executor_id: z.uuid(),
        reliability_score: z.number().min(0).max(1).nullable(),
        window_days: z.int(),
        observed_minutes: z.int(),
        reachable_minutes: z.int(),
        rented_minutes: z.int(),
        launches_succeeded: z.int(),
        launches_failed: z.int(),
        interruptions: z.int(),
        availability: z.number().min(0).max(1).nullable(),
        launch_rate: z.number().min(0).max(1),
        continuity: z.number().min(0).max(1),
      },
      {
        executor_id: 'Id of the node.',
        reliability_score:
          '`availability · launch_rate · continuity`, rounded down to three decimals; null if the node was observed for less than a day. The node list shows the score of the last check.',
        window_days: 'Number of days that the figures cover.',
        observed_minutes:
          'Minutes between checks, except announced maintenance and gaps of more than two hours.',
        reachable_minutes: 'Minutes of these that ended with an answer of the node.',
        rented_minutes: 'Reachable minutes with at least one rented GPU.',
        launches_succeeded: 'Number of launches after which the pod ran.',
        launches_failed: 'Number of launches that failed because of the node.',
        interruptions:
          'Number of times that a running pod lost contact without announced maintenance.',
        availability: '`reachable_minutes / observed_minutes`; null if nothing was observed.',
        launch_rate: '`(launches_succeeded + 2) / (launches_succeeded + launches_failed + 2)`.',
        continuity: '`(rented days + 7) / (rented days + 7 + interruptions)`.',
      },
    ),
  )
  .meta({ id: 'ReliabilityResponse' });
export type ReliabilityResponse = z.output<typeof ReliabilityResponse>;

export const RentabilityResponse = z
  .object(
    described(
      {
        rentable: z.boolean(),
        reasons: z.array(
          z.object(
            described(
              { code: z.string(), message: z.string() },
              {
                code: 'Error code that a rental would get.',
                message: 'The reason, as a sentence.',
              },
            ),
          ),
        ),
        free_gpu_count: z.int(),
        min_gpu_count: z.int(),
      },
      {
        rentable: 'True if the node can be rented now.',
        reasons: 'Why the node cannot be rented; empty if it can.',
        free_gpu_count: 'Number of free GPUs.',
        min_gpu_count:
          'Smallest number of GPUs that a rental may take: all of the node if it is rented whole only.',
      },
    ),
  )
  .meta({ id: 'RentabilityResponse' });
export type RentabilityResponse = z.output<typeof RentabilityResponse>;

export const DefaultDockerImageQuery = z
  .object(
    described(
      { gpu_model: z.string().min(1).max(200), driver_version: z.string().max(50).optional() },
      {
        gpu_model: 'Short type or full name of the GPU.',
        driver_version:
          'Version of the GPU driver. The answer does not depend on it, so that it may be absent.',
      },
    ),
  )
  .meta({ example: { gpu_model: 'NVIDIA H100 80GB HBM3', driver_version: '570.86.15' } });
export const DefaultDockerImage = z
  .object(
    described(
      {
        docker_image: z.string(),
        docker_image_tag: z.string(),
        docker_image_size: z.int().nullable(),
        docker_image_digest: z.string().nullable(),
      },
      {
        docker_image: 'Image without its tag.',
        docker_image_tag: 'Tag of the image.',
        docker_image_size: 'Compressed size in bytes; null if unknown.',
        docker_image_digest: 'Digest of the image (`sha256:…`); null if unknown.',
      },
    ),
  )
  .meta({ id: 'DefaultDockerImage' });
export type DefaultDockerImage = z.output<typeof DefaultDockerImage>;

export const MachineResponse = z
  .object(
    described(
      { name: z.string(), price: z.number(), rental_rate: z.number(), total_gpu_count: z.int() },
      {
        name: 'Full name of the GPU.',
        price:
          'Reference price in USD per GPU and hour; the lowest price on offer for a GPU without one.',
        rental_rate: 'Fraction of such GPUs that is rented, 0 to 1.',
        total_gpu_count: 'Number of such GPUs.',
      },
    ),
  )
  .meta({ id: 'MachineResponse' });
export type MachineResponse = z.output<typeof MachineResponse>;

export const MachineCapacityResponse = z
  .object(
    described(
      {
        base_model: z.string(),
        buckets: z.record(
          z.string(),
          z.object(
            described(
              { max_cap: z.int(), unrented_count: z.int(), hourly_rate: z.number() },
              {
                max_cap: 'Number of nodes that offer this many GPUs, rented ones included.',
                unrented_count: 'Number of these nodes on which they are free.',
                hourly_rate: 'Lowest price in USD per hour for this many GPUs.',
              },
            ),
          ),
        ),
      },
      { base_model: 'Short type of the GPU.', buckets: 'Capacity by number of GPUs, as text.' },
    ),
  )
  .meta({ id: 'MachineCapacityResponse' });
export type MachineCapacityResponse = z.output<typeof MachineCapacityResponse>;

export const DeploymentEstimateQuery = z
  .object(
    described(
      { template_id: Uuid, executor_id: Uuid },
      { template_id: 'Id of the template.', executor_id: 'Id of the node.' },
    ),
  )
  .meta({ example: { template_id: EXAMPLE_IDS.template, executor_id: EXAMPLE_IDS.node } });
export type DeploymentEstimateQuery = z.output<typeof DeploymentEstimateQuery>;

export const DeploymentEstimateResponse = z
  .object(
    described(
      {
        estimated_seconds: z.number(),
        eta_basis: z.enum(ETA_BASES),
        is_slow_machine: z.boolean(),
        warning_message: z.string().nullable(),
        is_cached_template: z.boolean(),
        docker_image_size: z.int().nullable(),
        required_balance_usd: z.number(),
        price_per_hour: z.number(),
      },
      {
        estimated_seconds: 'Expected seconds from the rental until the pod runs.',
        eta_basis:
          'Basis of the estimate: earlier launches, the measured pull speed, or assumed values.',
        is_slow_machine: 'True if the node is expected to be much slower than usual.',
        warning_message: 'Warning for the renter; null for none.',
        is_cached_template: 'True if the node has the image.',
        docker_image_size: 'Compressed size of the image in bytes; null if unknown.',
        required_balance_usd: 'Balance in USD that a rental of the whole node requires.',
        price_per_hour: 'USD per hour for the whole node.',
      },
    ),
  )
  .meta({ id: 'DeploymentEstimateResponse' });
export type DeploymentEstimateResponse = z.output<typeof DeploymentEstimateResponse>;
