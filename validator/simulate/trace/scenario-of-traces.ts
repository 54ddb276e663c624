/** Makes a scenario from public cluster traces: hosts of a trace become its supply, and jobs its demand. */
import { ConfigError } from '#shared/runtime/config.ts';
import { readCheckPolicy } from '../../checks/check-policy.ts';
import { DEFAULT_POLICY_FILE, rateOf, readWeightPolicy } from '../../weights/weight-policy.ts';
import { type HostClass, type Job, Scenario } from '../scenarios/scenario.ts';
import { fullNameOf } from './gpu-models.ts';
import { readTrace } from './read-trace.ts';
import {
  createTraceSummary,
  type HostGroup,
  type JobGroup,
  type TraceSummary,
} from './trace-summary.ts';

/** Number of actors of the run, to which the load of the trace is scaled. */
export type TraceScale = { providers: number; renters: number };

const MAX_GROUPS = 100;
const MICRO_USD = 1_000_000;
/** Highest price that a renter accepts, relative to the first price. */
const ACCEPTED = 2;
const MAX_SIGMA = 3;
const SHORTEST_PAUSE_HOURS = 0.1;
/** Median duration of jobs for hosts of a trace without jobs. */
const DEFAULT_HOURS = 8;

/** `base` has everything that traces lack: regions, prices’ strategies, faults and credit. Throws ConfigError. */
export async function scenarioOfTraces(
  files: readonly string[],
  base: Scenario,
  scale: TraceScale,
): Promise<Scenario> {
  const summary = createTraceSummary();
  for (const file of files) {
    for await (const row of readTrace(file)) {
      if (row === null) summary.skip();
      else if ('host' in row) summary.addHost(row.host);
      else summary.addJob(row.job);
    }
  }
  return scenarioOf(summary.result(), base, scale);
}

/** Pure except for the policies that it reads. */
export function scenarioOf(summary: TraceSummary, base: Scenario, scale: TraceScale): Scenario {
  const { hosts, jobs, skipped } = summary;
  if (hosts.length === 0 && jobs.length === 0) {
    throw new ConfigError('--trace: the files have neither hosts nor jobs with GPUs');
  }
  const resolve = createResolver();
  const classes = hosts.slice(0, MAX_GROUPS).map((group) => classOf(group, resolve));
  const offered = classes.length === 0 ? base.supply.classes : classes;
  const wanted =
    jobs.length === 0
      ? offered.map(({ gpu, gpus, weight, price_usd: usd }) => jobFor({ gpu, gpus, weight, usd }))
      : jobs.slice(0, MAX_GROUPS).map((group) => jobOfGroup(group, offered, resolve));
  return Scenario.parse({
    ...base,
    name: 'trace',
    description: `Hosts: ${countOf(hosts) || 'of the scenario'}. Jobs: ${countOf(jobs) || 'one kind for each kind of host'}. ${skipped} rows without GPUs, start or end are left out. Prices, faults and models that the trace does not disclose are assumed.`,
    supply: { ...base.supply, classes: offered },
    demand: {
      ...base.demand,
      jobs: wanted,
      pause_hours: jobs.length === 0 ? base.demand.pause_hours : pauseHours(summary, scale),
    },
  });
}

type Model = { gpu: string; memoryMib: number; usd: number };
type Resolve = (model: string) => Model;

function createResolver(): Resolve {
  const { models } = readCheckPolicy();
  const policy = readWeightPolicy(DEFAULT_POLICY_FILE);
  return (model) => {
    const gpu = fullNameOf(model, models);
    const [low, high] = models[gpu ?? ''] ?? [0, 0];
    if (gpu === null) {
      throw new ConfigError(
        `--trace: the GPU model ${JSON.stringify(model)} is unknown: write the full name that its driver reports, as in \`podwright-validator policy\``,
      );
    }
    const usd = Math.max(0.01, rateOf(policy, gpu) / MICRO_USD);
    return { gpu, memoryMib: Math.round((low + high) / 2), usd };
  };
}

function classOf({ model, gpus, count }: HostGroup, resolve: Resolve): HostClass {
  const { gpu, memoryMib, usd } = resolve(model);
  return {
    name: `${slugOf(model)}-${gpus}`,
    gpu,
    gpus,
    memory_mib: memoryMib,
    weight: count,
    price_usd: usd,
    price_spread_permille: 200,
    start_seconds: 60,
  };
}

function jobOfGroup(
  { model, gpus, count, logMean, logSigma }: JobGroup,
  offered: readonly HostClass[],
  resolve: Resolve,
): Job {
  const named = model === null ? null : resolve(model);
  const gpu = named?.gpu;
  if (gpu !== undefined && !offered.some((each) => each.gpu === gpu)) {
    throw new ConfigError(
      `--trace: jobs request ${model} (${gpu}), which no host offers: add the file of the trace’s hosts with a second --trace`,
    );
  }
  const usd = named?.usd ?? Math.max(...offered.map(({ price_usd: price }) => price));
  const hours = Math.exp(logMean);
  return {
    ...jobFor({ gpu, gpus, weight: count, usd }),
    hours,
    hours_sigma: Math.min(logSigma, MAX_SIGMA),
  };
}

function jobFor(job: { gpu: string | undefined; gpus: number; weight: number; usd: number }): Job {
  const { gpu, gpus, weight, usd } = job;
  const price = { max_price_usd: Math.round(usd * ACCEPTED * 100) / 100 };
  const kind = { gpus, weight, hours: DEFAULT_HOURS, hours_sigma: 0.8, ...price };
  return gpu === undefined ? kind : { gpu, ...kind };
}

/**
 * Pause between two jobs of a renter with which all renters together rent as often per host as in the trace. Throws
 * ConfigError if there are too few renters.
 */
function pauseHours(summary: TraceSummary, { providers, renters }: TraceScale): number {
  const hosts = summary.hosts.reduce((sum, { count }) => sum + count, 0);
  const rate = summary.rentalsPerHour * (hosts === 0 ? 1 : providers / hosts);
  if (rate === 0 || renters === 0) return SHORTEST_PAUSE_HOURS;
  const rentals = summary.jobs.reduce((sum, { count }) => sum + count, 0);
  const busy =
    summary.jobs.reduce(
      (sum, { count, logMean, logSigma }) =>
        sum + count * Math.exp(logMean + Math.min(logSigma, MAX_SIGMA) ** 2 / 2),
      0,
    ) / rentals;
  const pause = renters / rate - busy;
  if (pause >= SHORTEST_PAUSE_HOURS) return pause;
  const needed = Math.ceil(rate * (busy + SHORTEST_PAUSE_HOURS));
  throw new ConfigError(
    `--renters ${renters}: the trace has ${rate.toFixed(2)} rentals per hour for ${providers} providers, which need at least ${needed} renters`,
  );
}

const slugOf = (model: string): string =>
  model
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, 36);

function countOf(groups: readonly { count: number }[]): string {
  const total = groups.reduce((sum, { count }) => sum + count, 0);
  return total === 0 ? '' : `${total} in ${groups.length} kinds of a trace`;
}
