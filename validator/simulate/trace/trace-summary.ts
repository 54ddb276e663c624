/** Groups of equal hosts and similar jobs of a trace, collected row by row in constant memory per group. Pure. */
import type { TraceHost, TraceJob } from './trace-rows.ts';

export type HostGroup = TraceHost & { count: number };

/** Durations are log-normal: `logMean` and `logSigma` describe the logarithm of the hours. */
export type JobGroup = Pick<TraceJob, 'model' | 'gpus'> & {
  count: number;
  logMean: number;
  logSigma: number;
};

export type TraceSummary = {
  hosts: HostGroup[];
  jobs: JobGroup[];
  /** Rentals per hour, between the first and the last twentieth of the jobs; 0 without jobs. */
  rentalsPerHour: number;
  /** Rows that the marketplace has no use for. */
  skipped: number;
};

const HOUR_S = 3_600;
const EDGE = 0.05;
/** Shorter jobs count as this long, so that their logarithm is finite. */
const SHORTEST_HOURS = 1 / 60;

type Sums = { model: string | null; gpus: number; count: number; sum: number; squares: number };

export function createTraceSummary() {
  const hosts = new Map<string, HostGroup>();
  const jobs = new Map<string, Sums>();
  const submitted: number[] = [];
  let [rentals, skipped] = [0, 0];

  return {
    addHost({ model, gpus }: TraceHost): void {
      const group = hosts.get(`${gpus} ${model}`) ?? { model, gpus, count: 0 };
      hosts.set(`${gpus} ${model}`, { ...group, count: group.count + 1 });
    },

    addJob({ model, gpus, rentals: count, submittedS, durationS }: TraceJob): void {
      const key = `${gpus} ${model ?? ''}`;
      const group = jobs.get(key) ?? { model, gpus, count: 0, sum: 0, squares: 0 };
      const log = Math.log(Math.max(durationS / HOUR_S, SHORTEST_HOURS));
      jobs.set(key, {
        ...group,
        count: group.count + count,
        sum: group.sum + count * log,
        squares: group.squares + count * log * log,
      });
      submitted.push(submittedS);
      rentals += count;
    },

    skip(): void {
      skipped += 1;
    },

    result(): TraceSummary {
      return {
        hosts: [...hosts.values()].toSorted((a, b) => b.count - a.count),
        jobs: [...jobs.values()].map(groupOf).toSorted((a, b) => b.count - a.count),
        rentalsPerHour: rateOf(submitted, rentals),
        skipped,
      };
    },
  };
}

function groupOf({ sum, squares, ...group }: Sums): JobGroup {
  const logMean = sum / group.count;
  const variance = Math.max(0, squares / group.count - logMean ** 2);
  return { ...group, logMean, logSigma: Math.sqrt(variance) };
}

/** Traces begin and end with jobs that are far from all others, so the edges do not count. */
function rateOf(submitted: readonly number[], rentals: number): number {
  const ordered = submitted.toSorted((a, b) => a - b);
  const at = (share: number) => ordered[Math.floor(share * (ordered.length - 1))] ?? 0;
  const hours = (at(1 - EDGE) - at(EDGE)) / HOUR_S;
  return hours <= 0 ? 0 : (rentals * (1 - 2 * EDGE)) / hours;
}
