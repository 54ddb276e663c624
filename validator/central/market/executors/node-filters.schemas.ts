/** Filters and paging of node lists. */
import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { queryNumber, Uuid } from '../../platform/wire.ts';

/** Largest page of GET /executors. Older clients request exactly this size. */
export const MAX_PAGE_SIZE = 1_000;
/** Largest number of nodes that a request may name. */
const MAX_IDS = 50;

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

const Ids = z.array(Uuid).min(1).max(MAX_IDS);

/** Ids separated by commas. */
const IdList = z
  .string()
  .max(MAX_IDS * 40)
  .transform((text, context) => {
    const { success, data } = Ids.safeParse(text.split(',').map((id) => id.trim()));
    if (success) return data;
    // One issue about the parameter, because its parts have no names that a client could see.
    context.addIssue({ code: 'custom', message: `Not 1 to ${MAX_IDS} ids separated by commas` });
    return z.NEVER;
  });

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
      bookmarked: "True for the account's bookmarked nodes only; this filter needs a credential.",
      machine_request_id: 'Id of a machine request: only the node that fulfils it.',
      collateral_deposited: 'True selects only nodes for which the provider made a deposit.',
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
      gpu_type: z.string().trim().min(1).max(200).optional(),
      min_vram_gb: queryNumber(z.number().min(0)).optional(),
      min_cpus: queryNumber(z.int().min(0)).optional(),
      min_ram_gb: queryNumber(z.number().min(0)).optional(),
      min_disk_gb: queryNumber(z.number().min(0)).optional(),
      min_reliability: queryNumber(z.number().min(0).max(1)).optional(),
      price_per_hour_lte: queryNumber(z.number()).optional(),
      max_check_age_minutes: queryNumber(z.int().min(1)).optional(),
      ids: IdList.optional(),
      available: z.stringbool().optional(),
      sort: z.enum(['price', 'reliability']).optional(),
      explain: z.stringbool().optional(),
    },
    {
      page: 'Number of the page, from 1; 1 if absent.',
      size: 'Maximum number of nodes per page, 1 to 1000; 1000 if absent.',
      view: '`summary` omits `specs`.',
      min_download_mbps:
        'Smallest measured download speed in Mbit/s. Nodes that were never measured are left out.',
      nvlink: 'True selects only nodes whose cards are all connected by NVLink.',
      gpu_type: 'Short type (`H100`) or full name of the GPU.',
      min_vram_gb: 'Smallest memory of each GPU in GB (10^9 bytes).',
      min_cpus: 'Smallest number of processors.',
      min_ram_gb: 'Smallest memory of the node in GB (10^9 bytes).',
      min_disk_gb: "Smallest free space on the node's disk in GB (10^9 bytes).",
      min_reliability: 'Smallest `reliability_score`, 0 to 1. Nodes without a score are left out.',
      price_per_hour_lte: 'Highest price in USD per hour for all GPUs of the node.',
      max_check_age_minutes: 'Largest age in minutes of the last check by a validator.',
      ids: 'Ids of nodes, separated by commas, at most 50: only these nodes, for example to compare them.',
      sort: '`price` (the default): cheapest first. `reliability`: highest `reliability_score` first, nodes without a score last, equal scores by price.',
      available: 'Accepted and ignored: every listed node is available.',
      explain: 'True returns an ExplainedExecutorList instead of the array.',
    },
  ),
).meta({ example: { price_lte: 10, gpu_count_gte: 1, size: 100, view: 'summary' } });
export type ExecutorListQuery = z.output<typeof ExecutorListQuery>;
