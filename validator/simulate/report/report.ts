/**
 * The report of a simulation, `report.json`: everything from which `report.html` and comparisons are made. Amounts are in
 * USD, times in hours after the start of the simulation, and shares between 0 and 1.
 */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { ConfigError } from '#shared/runtime/config.ts';
import { fileProblem } from '#shared/runtime/files.ts';
import { OUTCOMES } from '../../coverage/coverage.ts';
import { Scenario } from '../scenarios/scenario.ts';
import { Emission, PolicyTerms, WeighedHost } from './weight-schemas.ts';

/** Increases with each change that readers of older reports cannot parse. */
export const REPORT_VERSION = 3;
const MAX_FILE_BYTES = 256 * 1024 * 1024;

const Count = z.int().min(0);
const Hours = z.number().min(0);
const Usd = z.number();
const Share = z.number();
const Counts = z.record(z.string(), Count);

const MarketSample = z.strictObject({
  at_hours: Hours,
  gpu: z.string(),
  hosts: Count,
  gpus: Count,
  /** GPUs of hosts that passed inspection. */
  verified_gpus: Count,
  rented_gpus: Count,
  /** Free GPUs of hosts that passed inspection: these could be rented. */
  free_gpus: Count,
  /** Free GPUs of partly rented hosts: no rental of the whole host can use them. */
  stranded_gpus: Count,
  /** Mean prices per GPU and hour of the offered and of the rented GPUs; null if there are none. */
  offered_usd: Usd.nullable(),
  rented_usd: Usd.nullable(),
  /** The same of all GPUs of the run, also of hosts that fail inspection or left: it changes only with prices. */
  asked_usd: Usd.nullable(),
});
export type MarketSample = z.output<typeof MarketSample>;

const RegionSample = z.strictObject({
  at_hours: Hours,
  region: z.string(),
  hosts: Count,
  gpus: Count,
  /** GPUs of hosts that passed inspection. */
  verified_gpus: Count,
  rented_gpus: Count,
  /** Free GPUs of hosts that passed inspection: these could be rented. */
  free_gpus: Count,
  /** Rentals of hosts of the region, and interrupted pods, in the hour that ended. */
  accepted: Count,
  interruptions: Count,
});
export type RegionSample = z.output<typeof RegionSample>;

/** Charged time of all pods on hosts with one GPU model, at the prices of the rentals. */
const Usage = z.strictObject({ gpu: z.string(), gpu_hours: Hours, cost_usd: Usd });
export type Usage = z.output<typeof Usage>;

/** Requests for rentals in the hour that ended. */
const RequestSample = z.strictObject({ at_hours: Hours, requested: Count, refused: Count });
export type RequestSample = z.output<typeof RequestSample>;

const FaultEffect = z.strictObject({
  /** Kind of the fault, by the names of the scenario. */
  kind: z.string(),
  /** Region that was cut off; null for other faults. */
  region: z.string().nullable(),
  /** GPU model of the host; null unless the fault hit one host. */
  gpu: z.string().nullable(),
  /** Name of this host, which is that of its provider in the events, and its region. */
  host: z.string().nullable(),
  host_region: z.string().nullable(),
  from_hours: Hours,
  /** Null for a fault that lasted when the figures end. */
  to_hours: Hours.nullable(),
  /** Hosts that the fault hit; 0 for a fault of a service. */
  hosts: Count,
  /** Pods that were on these hosts during the fault. */
  pods: Count,
  /** Pods that the fault ended while they ran, and before they ran. */
  interruptions: Count,
  failed_starts: Count,
  failed_checks: Count,
  /** Time in which pods did not answer and were not charged, and its price. */
  lost_pod_hours: Hours,
  uncharged_usd: Usd,
  refunds_usd: Usd,
  /** Income and fees that providers and the marketplace lost by time without charge and by refunds. */
  provider_loss_usd: Usd,
  platform_loss_usd: Usd,
  /** Paid and not refunded for interrupted pods. */
  renter_loss_usd: Usd,
});
export type FaultEffect = z.output<typeof FaultEffect>;

const LedgerSample = z.strictObject({
  at_hours: Hours,
  held_usd: Usd,
  /** Sum of the balances by kind of account: credits minus debits. */
  balances_usd: z.record(z.string(), Usd),
});
export type LedgerSample = z.output<typeof LedgerSample>;

const Spend = z.strictObject({
  /** Price of the rental for the time that the renter planned. */
  quoted_usd: Usd,
  /** Charges less refunds. */
  paid_usd: Usd,
});
export type Spend = z.output<typeof Spend>;

const Rentals = z.strictObject({
  requested: Count,
  accepted: Count,
  /** Refused requests by the constraint that no node met, or by error code. */
  refusals: Counts,
  start_seconds: z.array(z.number().min(0)),
  failed_starts: Counts,
  /** Time after which the central API gives up a start, and the factor by which the fault `slow` delays a start. */
  start_limit_seconds: z.number().min(0),
  slow_start_factor: z.number().min(1),
  interruptions: z.array(
    z.strictObject({
      at_hours: Hours,
      status: z.string(),
      reason: z.string(),
      region: z.string(),
    }),
  ),
  completed: Count,
  open: Count,
});

/** Result of inspections of a host that cheats, under the policies of the run. */
const ExpectedDetection = z.strictObject({
  /** `fails` and `no weight`: the cheat counts. `recorded`: a check finds it, without effect. `passes`: no check does. */
  outcome: z.enum(OUTCOMES),
  /** Checks that find the cheat, each with its reason code after a space. */
  checks: z.array(z.string()),
  /** Smallest number of inspections after which the cheat counts; null if no check finds it. */
  inspections: Count.nullable(),
});
export type ExpectedDetection = z.output<typeof ExpectedDetection>;

const DetectedCheat = z.strictObject({
  cheat: z.string(),
  hosts: Count,
  found: Count,
  expected: ExpectedDetection,
  /** Number of inspections of each host that was not found. */
  missed_inspections: z.array(Count),
  /** Hours until the first failed check of each host that was found. */
  delays_hours: z.array(Hours),
  /** Reasons of the first failed checks. */
  reasons: Counts,
});
export type DetectedCheat = z.output<typeof DetectedCheat>;

const Detection = z.strictObject({
  cheats: z.array(DetectedCheat),
  honest: z.strictObject({
    hosts: Count,
    checks: Count,
    /** Failed checks during a fault of the host, or shortly after it. */
    failed_in_fault: Count,
    /** The same checks by the kind of the fault. */
    failed_by_fault: Counts,
    /** Failed checks that only a fault of a service explains, by the fault and the reason. */
    failed_in_service_fault: Counts,
    /** Failed checks that no fault explains, by reason: false positives. */
    failed_without_fault: Counts,
  }),
});

/** Prices of the hosts of one strategy, relative to the first price of each host. */
const StrategyPrices = z.strictObject({
  strategy: z.string(),
  hosts: Count,
  changes: Count,
  /** Mean over the hosts at the end, and the lowest of any host at any time. */
  mean_share: Share,
  lowest_share: Share,
  /** Hosts whose price reached the floor or the ceiling at some time. */
  reached_floor: Count,
  reached_ceiling: Count,
});
export type StrategyPrices = z.output<typeof StrategyPrices>;

const Prices = z.strictObject({
  /** Bounds of every strategy, relative to the first price of a host. */
  floor_share: Share,
  ceiling_share: Share,
  strategies: z.array(StrategyPrices),
});
export type Prices = z.output<typeof Prices>;

const Day = z.strictObject({
  day: Count,
  hosts: Count,
  verified: Count,
  gpus: Count,
  gpus_rented: Count,
  jobs: Count,
  rented: Count,
  refused: Count,
  failed_starts: Count,
  checks: Count,
  postings: Count,
  charged_usd: Usd,
  events: Count,
});

/** A setting of the services that differs from production. */
const Difference = z.strictObject({
  setting: z.string(),
  simulation: z.string(),
  production: z.string(),
});
export type Difference = z.output<typeof Difference>;

export const Report = z.strictObject({
  version: z.literal(REPORT_VERSION),
  program: z.string(),
  run: z.strictObject({
    seed: Count,
    providers: Count,
    renters: Count,
    days: Count,
    /** Hours that were simulated. */
    hours: Hours,
    /** Hours that the figures cover: without those in which the market comes to rest. */
    period_hours: Hours,
    /** SHA-256 of the weight policy. */
    policy: z.string(),
    passed: z.boolean(),
    violation: z
      .strictObject({ invariant: z.string(), what: z.string(), trace: z.array(z.string()) })
      .nullable(),
    /** True if the run ended at `--until`. */
    stopped: z.boolean(),
    events: Count,
    hash: z.string(),
  }),
  weight_policy: PolicyTerms,
  scenario: Scenario,
  differences: z.array(Difference),
  days: z.array(Day),
  market: z.array(MarketSample),
  regions: z.array(RegionSample),
  requests: z.array(RequestSample),
  usage: z.array(Usage),
  prices: Prices,
  /** Oldest first. */
  faults: z.array(FaultEffect),
  rentals: Rentals,
  spend: z.array(Spend),
  /** Income of each provider, ascending. */
  incomes_usd: z.array(Usd),
  weights: z.array(WeighedHost),
  emission: Emission,
  detection: Detection,
  ledger: z.array(LedgerSample),
});
export type Report = z.output<typeof Report>;

/** Throws ConfigError that names the file and the first wrong field. */
export function readReport(path: string): Report {
  let content: unknown;
  try {
    const text = readFileSync(path, 'utf8');
    if (text.length > MAX_FILE_BYTES) throw new Error(`longer than ${MAX_FILE_BYTES} bytes`);
    content = JSON.parse(text);
  } catch (error) {
    throw new ConfigError(fileProblem(path, error), { cause: error });
  }
  const parsed = Report.safeParse(content);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const where = issue?.path.join('.') || 'the file';
  throw new ConfigError(
    `${path} is not a report of this version: ${where}: ${issue?.message ?? ''}: run the simulation again`,
  );
}
