/** Wire schemas of the routes below /api/_local, with which people control a simulated marketplace. */
import { z } from 'zod';
import { NaiveTime } from '../../central/platform/wire.ts';
import { HOST_FAULTS, MAX_JUMP_S, SERVICE_FAULTS } from '../scenarios/scenario.ts';

const MAX_ADVANCE_S = 366 * 86_400;
const MAX_SPEED = 86_400;
const MAX_FAULT_MINUTES = 30 * 1_440;
/** No request reaches the clock while the central API is down. */
const MAX_OUTAGE_MINUTES = 1_440;
const MAX_REGION_CHARS = 40;
const PERMILLE = 1_000;

/** Request to change the clock. */
export const ChangeClock = z.discriminatedUnion('action', [
  /** Runs all that happens in the next `seconds` simulated seconds. */
  z.strictObject({ action: z.literal('advance'), seconds: z.int().min(1).max(MAX_ADVANCE_S) }),
  /** Stops the clock, and cancels an advance. */
  z.strictObject({ action: z.literal('pause') }),
  /** Lets time pass, at `speed` simulated seconds per second. */
  z.strictObject({ action: z.literal('run'), speed: z.int().min(1).max(MAX_SPEED) }),
]);
export type ChangeClock = z.output<typeof ChangeClock>;

export const ClockState = z.object({
  /** `advancing`: until all that happens until `advances_until` is complete, or the central API is back. */
  status: z.enum(['paused', 'running', 'advancing']),
  /** Simulated time (UTC). */
  time: NaiveTime,
  /** Time at which the simulation began (UTC). */
  started_at: NaiveTime,
  /** End of the present advance; null without one. */
  advances_until: NaiveTime.nullable(),
  /** Simulated seconds per second; null unless the clock runs, or runs after the advance. */
  speed: z.int().nullable(),
  /** Number of events since the start. */
  events: z.int(),
  /** First violation of an invariant, which paused the clock; null without one. */
  violation: z.string().nullable(),
  /** Explains the end of the present or last advance, if a fault moved the wall clock; otherwise null. */
  note: z.string().nullable(),
});

const Minutes = z.int().min(1).max(MAX_FAULT_MINUTES);
const Outage = z.int().min(1).max(MAX_OUTAGE_MINUTES);
const [CENTRAL, ...OTHER_SERVICES] = SERVICE_FAULTS;

/** Request for a fault, in the kinds of the scenario. `lasts_minutes` is simulated time. */
export const BeginFault = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.enum(HOST_FAULTS), executor_id: z.uuid(), lasts_minutes: Minutes }),
  z.strictObject({
    kind: z.literal('region'),
    region: z.string().max(MAX_REGION_CHARS),
    lasts_minutes: Minutes,
  }),
  z.strictObject({ kind: z.literal(CENTRAL), lasts_minutes: Outage }),
  z.strictObject({ kind: z.enum(OTHER_SERVICES), lasts_minutes: Minutes }),
  /** Without `lasts_minutes`, the hosts do not return. */
  z.strictObject({
    kind: z.literal('leave'),
    share_permille: z.int().min(1).max(PERMILLE),
    lasts_minutes: Minutes.optional(),
  }),
  z.strictObject({
    kind: z.literal('clock'),
    by_seconds: z.int().min(-MAX_JUMP_S).max(MAX_JUMP_S),
  }),
]);
export type BeginFault = z.output<typeof BeginFault>;

/** Path of a fault. */
export const FaultPath = z.strictObject({ number: z.coerce.number().int().min(1) });

export const FaultList = z.object({
  /** Faults that last now, also those of the scenario, oldest first. */
  faults: z.array(
    z.object({
      /** Number of the event that began the fault, by which the fault can be ended. */
      number: z.int(),
      kind: z.string(),
      /** Id of the node; null for a fault of a region or a service. */
      executor_id: z.uuid().nullable(),
      /** Readable name of the node; null without a node. */
      executor_huid: z.string().nullable(),
      region: z.string().nullable(),
      since: NaiveTime,
      until: NaiveTime,
    }),
  ),
  /** Regions of the scenario. */
  regions: z.array(z.string()),
});

export const EventList = z.object({
  /** Newest first. */
  events: z.array(
    z.object({
      number: z.int(),
      at: NaiveTime,
      kind: z.string(),
      /** Readable name of the node in `details`; null without a node. */
      executor_huid: z.string().nullable(),
      /** Further members of the event, such as `pod` and `executor`. */
      details: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])),
    }),
  ),
});
