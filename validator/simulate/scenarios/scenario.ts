/** Scenario of a simulation: supply, demand and faults as data. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { parseIsoTime } from '#shared/runtime/clock.ts';
import { ConfigError } from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { fileProblem } from '#shared/runtime/files.ts';
import { PERFORMED_CHEATS } from '../fleet/cheating-hosts.ts';

const MAX_FILE_BYTES = 1_000_000;
const MAX_CLASSES = 100;
export const MAX_JUMP_S = 31 * 86_400;
const Name = z.string().regex(/^[a-z0-9-]{1,40}$/, 'Not 1 to 40 of a-z, 0-9 and -');
const Weight = z.number().min(0).max(1e6);
const Hours = z.number().min(0).max(10_000);
const PERMILLE = 1_000;
const Permille = z.int().min(0).max(PERMILLE);

/**
 * Strategies of providers for their prices. `fixed`: never changes a price. `undercut`: lowers the price of a free host once a day and
 * raises that of a rented host. `war`: lowers every price once a day, to the floor.
 */
export const PRICE_STRATEGIES = ['fixed', 'undercut', 'war'] as const;

const HostClass = z.strictObject({
  name: Name,
  /** Full name of the GPU, as the driver reports it. */
  gpu: z.string().min(1).max(200),
  gpus: z.int().min(1).max(16),
  memory_mib: z.int().min(1).max(1_000_000),
  /** Share of the hosts, relative to the other classes. */
  weight: Weight,
  /** Price in USD per GPU and hour of the first offer: its mean, and the largest deviation in permille. */
  price_usd: z.number().min(0.01).max(1_000),
  price_spread_permille: Permille.default(200),
  /** Mean time in seconds until a pod runs. */
  start_seconds: z.number().min(0).max(7_200).default(60),
});
export type HostClass = z.output<typeof HostClass>;

const Supply = z.strictObject({
  classes: z.array(HostClass).min(1).max(MAX_CLASSES),
  regions: z.array(Name).min(1).max(MAX_CLASSES),
  strategies: z.partialRecord(z.enum(PRICE_STRATEGIES), Weight).default({ fixed: 1 }),
  /** Changes of a price per day, in permille of the price. */
  price_step_permille: Permille.default(50),
  /** Share of the providers that do not cheat, but rent their own host from a second account whenever it is free. */
  self_rental_permille: Permille.default(0),
});

const Job = z.strictObject({
  /** Full name of the GPU; absent: any. */
  gpu: z.string().min(1).max(200).optional(),
  gpus: z.int().min(1).max(16).default(1),
  weight: Weight,
  /** Median of the duration in hours; durations are log-normal with this deviation. */
  hours: Hours,
  hours_sigma: z.number().min(0).max(3).default(0.8),
  /** Highest price in USD per GPU and hour that the renter accepts. */
  max_price_usd: z.number().min(0.01).max(1_000),
});
export type Job = z.output<typeof Job>;

const Demand = z.strictObject({
  jobs: z.array(Job).min(1).max(MAX_CLASSES),
  /** Mean time in hours between the end of a renter's job and the next. */
  pause_hours: Hours,
  /** Granted credit of each account in USD. An account without credit cannot rent, and pays only once it has rented. */
  credit_usd: z.number().min(0).max(1e6),
  /** USD that an account pays automatically when the credit of its pods is nearly used up; 0: it never pays. */
  top_up_usd: z.literal(0).or(z.int().min(5).max(10_000)).default(0),
  /** Relative change of the number of jobs for a relative change of the price, as a positive number; 0: none. */
  price_elasticity: z.number().min(0).max(10).default(0),
  /** Share of pods that their renters forget: they run until the credit is used up. */
  idle_permille: Permille.default(20),
});

/**
 * Faults of hosts, with the mean number per host in 30 days. `flap`: the agent does not answer for some minutes. `dies`:
 * the host is down for hours and loses its pods. `slow`: pods take ten times as long to start, for hours. `card`: a card
 * fails, and the host is repaired after hours.
 */
export const HOST_FAULTS = ['flap', 'dies', 'slow', 'card'] as const;

/**
 * Faults of the services. `central`: the central API is killed, also within a transaction, and starts later on its
 * database. `validator`: the same for the validator. `registry`: no host can pull an image. `payments-late`: charges stay
 * pending. `payments-twice`: the payment processor reports each charge twice.
 */
export const SERVICE_FAULTS = [
  'central',
  'validator',
  'registry',
  'payments-late',
  'payments-twice',
] as const;

/**
 * Faults of many parties. `region`: the hosts of a region do not answer for hours. `leave`: up to a twentieth of the hosts
 * are withdrawn at once. `clock`: the wall clock jumps, mostly by minutes.
 */
export const MARKET_FAULTS = ['region', 'leave', 'clock'] as const;

/**
 * Events at a time in hours after the start. `region`: the hosts of a region do not answer. `leave`: hosts are withdrawn,
 * for ever or for some hours. `clock`: the wall clock jumps. Others are faults of services.
 */
const Event = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('region'), at_hours: Hours, for_hours: Hours, region: Name }),
  z.strictObject({
    kind: z.literal('leave'),
    at_hours: Hours,
    share_permille: Permille,
    for_hours: Hours.optional(),
  }),
  z.strictObject({
    kind: z.literal('clock'),
    at_hours: Hours,
    by_seconds: z.int().min(-MAX_JUMP_S).max(MAX_JUMP_S),
  }),
  z.strictObject({ kind: z.enum(SERVICE_FAULTS), at_hours: Hours, for_hours: Hours }),
]);
export type ScenarioEvent = z.output<typeof Event>;

/** Ids of the cheats that hosts perform. */
const CHEAT_IDS = PERFORMED_CHEATS.map(({ id }) => id);

export const Scenario = z
  .strictObject({
    version: z.literal(1),
    name: Name,
    description: z.string().max(1_000),
    /** Start of the simulation, ISO 8601. */
    starts_at: z
      .string()
      .refine((text) => parseIsoTime(text) !== null, 'Not an ISO 8601 time')
      .default('2027-01-01T00:00:00Z'),
    /** Interval of inspections. */
    check_interval_minutes: z.int().min(5).max(1_440).default(360),
    /** Interval of the pod sync of a host whose pods need nothing. */
    sync_interval_seconds: z.int().min(1).max(3_600).default(1_800),
    /** Interval of the pod sync of a host with a pod that starts, reboots or ends. */
    busy_sync_seconds: z.int().min(1).max(600).default(30),
    /** Longest pause between two syncs of a node that does not answer. */
    unreachable_sync_seconds: z.int().min(1).max(3_600).default(600),
    /** Interval of the metering job. */
    meter_tick_seconds: z.int().min(10).max(3_600).default(3_600),
    /** Shortest pause of the central API's jobs that poll for rows of other processes. */
    poll_seconds: z.int().min(1).max(3_600).default(1_800),
    /** Time between two requests of a renter for a pod that runs. */
    watch_minutes: z.int().min(1).max(1_440).default(240),
    /** Worth in USD of all weight for an hour, by which reports convert weight to rewards. */
    weights_worth_usd_per_hour: z.number().min(0).max(1e6).default(1_000),
    supply: Supply,
    demand: Demand,
    host_faults: z.partialRecord(z.enum(HOST_FAULTS), z.number().min(0).max(1_000)).default({}),
    /** Mean number of each fault of the services in 30 days. */
    service_faults: z
      .partialRecord(z.enum(SERVICE_FAULTS), z.number().min(0).max(1_000))
      .default({}),
    /** Mean number of each fault of many parties in 30 days. */
    market_faults: z.partialRecord(z.enum(MARKET_FAULTS), z.number().min(0).max(1_000)).default({}),
    /**
     * Share of the hosts in permille that perform each cheat of the coverage table, by the id of the cheat. A host that
     * fails is inspected in each pass over the list of nodes, so hosts that cheat cost many checks.
     */
    cheats: z.partialRecord(z.enum(CHEAT_IDS), z.number().min(0).max(PERMILLE)).default({}),
    events: z.array(Event).max(1_000).default([]),
  })
  .refine(({ supply, events }) => events.every((event) => isKnown(event, supply.regions)), {
    message: 'an event names a region that supply.regions does not list',
    path: ['events'],
  })
  .refine(({ cheats }) => sum(Object.values(cheats)) <= PERMILLE, {
    message: 'the shares of the cheats together exceed 1000 permille',
    path: ['cheats'],
  });
export type Scenario = z.output<typeof Scenario>;

export const DEFAULT_SCENARIO = join(import.meta.dirname, 'default.json');
const SCENARIO_HINT =
  'Name a scenario file, such as those in validator/simulate/scenarios, or leave the option out for the default.';

/** Throws ConfigError that names the file and every wrong field. */
export function readScenario(path: string): Scenario {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new ConfigError(`--scenario: ${fileProblem(path, error)}. ${SCENARIO_HINT}`);
  }
  if (text.length > MAX_FILE_BYTES) {
    throw new ConfigError(`--scenario ${path} is larger than ${MAX_FILE_BYTES} bytes`);
  }
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch (error) {
    throw new ConfigError(`--scenario ${path} is not JSON: ${messageOf(error)}`);
  }
  const parsed = Scenario.safeParse(data);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(
    ({ path: at, message }) => `--scenario ${path}: ${at.join('.') || 'the file'}: ${message}`,
  );
  throw new ConfigError(problems.join('\n'));
}

const isKnown = (event: ScenarioEvent, regions: readonly string[]): boolean =>
  event.kind !== 'region' || regions.includes(event.region);

const sum = (shares: readonly (number | undefined)[]): number =>
  shares.reduce<number>((total, each) => total + (each ?? 0), 0);
