/**
 * Nodes in the form that the public routes return: the offer, its score, and the reasons why the node cannot be rented.
 */

import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { NaiveTime, Uuid } from '../../platform/wire.ts';
import { NoticePeriod } from './notice-period.ts';
import { ExecutorSpecs } from './specs.ts';

export const ExecutorParams = z.object({ executor_uuid: Uuid });

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
    'Result of comparing the place that the provider entered with the evidence: `confirmed`, `contradicted`, or `entered` if it was not compared yet or the evidence is not sufficient. Null if no place was entered. A contradicted place is not shown.',
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
        last_checked_at: NaiveTime.nullable(),
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
          'Smallest number of GPUs that a rental may take; all GPUs if only the whole node can be rented.',
        executor_ip_address: 'Public IP address of the node.',
        status: 'Always `available`, because the market offers the node.',
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
          'Minutes for which every check has reached the node; null before the first passed check, and while the node is unreachable.',
        last_checked_at:
          'Time of the last check by a validator (UTC); null before the first check.',
        miner_hotkey: 'ss58 of the provider.',
        validator_hotkey:
          'ss58 of the validator with the last verdict; null before the first verdict.',
        provider_id: 'Id of the provider.',
        collateral_deposited: 'True if the provider deposited collateral.',
        ncu_profiling_enabled:
          'True if GPU performance counters can be read in pods. Always null, because no validator measures this.',
        pending_price_per_hour: 'Always null: a new price applies to new rentals at once.',
        price_change_effective_date: 'Always null: a new price applies to new rentals at once.',
        is_bookmarked: 'True if the account bookmarked the node; present only with a credential.',
        machine_request_id:
          "Id of the account's machine request that the node fulfils, null for none; present only with a credential.",
        notice_period: 'Announced maintenance or removal; null for none.',
        nvlink: 'True if NVLink connects every pair of cards; null if unknown.',
        interconnect:
          '`NVLink`, or the farthest PCIe connection of two cards (`PIX` to `SYS`); null if unknown, or if the node has one card.',
        p2p: "True if the cards can read each other's memory. Always null, because no validator measures this.",
        location_check:
          'How the place was obtained: `entered` by the provider, `confirmed` by evidence, or `contradicted` by evidence; null if no place was entered. A contradicted place is not shown.',
        simulated: 'True if the GPUs are simulated, as in a demonstration.',
      },
    ),
  )
  .meta({ id: 'ExecutorDetailResponse' });
export type ExecutorDetailResponse = z.output<typeof ExecutorDetailResponse>;

const ConstraintValue = z.union([z.string(), z.number(), z.boolean()]);

/** Members of responses that explain the number of nodes left by each constraint. */
export const explanation = {
  funnel: z
    .array(
      z.object({
        constraint: z.string().meta({ description: 'Name of the constraint in the request.' }),
        remaining: z.int().meta({
          description: 'Number of nodes that meet this constraint and all earlier constraints.',
        }),
      }),
    )
    .meta({
      description:
        'Number of nodes that each constraint left, in order. The first entry counts the nodes that can be rented now.',
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
        executor_huid: z.string().meta({ description: 'Readable name of the node.' }),
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
  described({ count: z.int() }, { count: 'Number of nodes that can be rented now.' }),
);

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
        reachable_minutes: 'Part of `observed_minutes` that ended with an answer of the node.',
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
        reasons: 'Reasons why the node cannot be rented; empty if it can be rented.',
        free_gpu_count: 'Number of free GPUs.',
        min_gpu_count:
          'Smallest number of GPUs that a rental may take: all of the node if it is rented whole only.',
      },
    ),
  )
  .meta({ id: 'RentabilityResponse' });
export type RentabilityResponse = z.output<typeof RentabilityResponse>;
