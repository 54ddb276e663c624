/** What one executor earns in one cycle: integer factors in ppm, one division at the end (validator reference 8.1). Pure. */
import type { Cycle, CycleEntry } from './cycle-set.ts';
import { CARRY_CYCLES, idleCapOf, ONE_PPM, rateOf, type WeightPolicy } from './weight-policy.ts';

/** In the order in which they are multiplied. */
export const FACTORS = [
  'unit',
  'uptime',
  'runtime',
  'collateral',
  'dilution',
  'stability',
  'eligible',
] as const;
export type Factor = (typeof FACTORS)[number];

/** Why an executor earns nothing, whatever its other factors are. */
export type Obstacle = 'failed' | 'simulated' | 'unknown_model' | 'price' | 'bandwidth' | 'banned';

export type Score = {
  entry: CycleEntry;
  /** ppm, but for `unit` (micro-USD per hour) and `eligible` (0 or 1). */
  factors: Readonly<Record<Factor, number>>;
  obstacles: readonly Obstacle[];
  points: bigint;
};

const ONE = BigInt(ONE_PPM);
/** uptime, runtime, collateral, dilution and stability are in ppm. */
const PPM_FACTORS = 5n;

/** Of the executors that could be measured; the others have no score in this cycle. */
export function scoresOf(cycle: Cycle, policy: WeightPolicy, embedded: boolean): Score[] {
  const idle = idleGpus(cycle, policy);
  return cycle.entries
    .filter(({ verdict }) => verdict !== 'withheld')
    .map((entry) => {
      const obstacles = obstaclesOf(entry, policy, embedded);
      const factors = {
        unit: entry.gpu_count * rateOf(policy, entry.gpu_model),
        uptime: uptimePpm(entry.uptime_minutes, policy),
        runtime: ONE_PPM + (entry.runtime_proven ? policy.runtime_bonus_ppm : 0),
        collateral: entry.collateral ? ONE_PPM : policy.no_collateral_ppm,
        dilution: entry.rented ? ONE_PPM : dilutionPpm(entry, policy, idle),
        stability: ONE_PPM - entry.failure_ppm,
        eligible: obstacles.length === 0 ? 1 : 0,
      };
      return { entry, factors, obstacles, points: pointsOf(factors) };
    });
}

/** Micro-USD per hour of an executor as it is worth to the market. */
export function pointsOf(factors: Readonly<Record<Factor, number>>): bigint {
  const product = FACTORS.reduce((before, factor) => before * BigInt(factors[factor]), 1n);
  return product / ONE ** PPM_FACTORS;
}

function uptimePpm(minutes: number, { uptime }: WeightPolicy): number {
  const { floor_ppm: floor, full_minutes: full } = uptime;
  const part = Math.floor((Math.min(minutes, full) * ONE_PPM) / full);
  return floor + Math.floor(((ONE_PPM - floor) * part) / ONE_PPM);
}

function obstaclesOf(entry: CycleEntry, policy: WeightPolicy, embedded: boolean): Obstacle[] {
  const rate = rateOf(policy, entry.gpu_model);
  const highest = (BigInt(rate) * BigInt(policy.max_price_rate_ppm)) / ONE;
  const { price_uusd: price, bandwidth_mbit: bandwidth } = entry;
  const all: [Obstacle, boolean][] = [
    ['failed', entry.verdict !== 'ok'],
    ['simulated', entry.simulated && !embedded],
    ['unknown_model', rate === 0],
    ['price', price !== null && BigInt(price) > highest],
    ['bandwidth', bandwidth !== null && bandwidth < policy.min_bandwidth_mbit],
    ['banned', policy.banned_hotkeys.includes(entry.hotkey)],
  ];
  return all.filter(([, stands]) => stands).map(([obstacle]) => obstacle);
}

/** By model and size of hosts. GPUs are counted, not hosts, so that dividing a host gains nothing. */
type IdleGpus = ReadonlyMap<string, number>;

const poolKey = (model: string, line: number) => `${line} ${model}`;

/** Those that could not be measured count too: what is not known of one must not raise the others. */
function idleGpus({ entries }: Cycle, policy: WeightPolicy): IdleGpus {
  const counts = new Map<string, number>();
  for (const { rented, verdict, gpu_model: model, gpu_count: gpus } of entries) {
    if (rented || verdict === 'failed') continue;
    const cap = idleCapOf(policy, model, gpus);
    if (cap === null) continue;
    const key = poolKey(model, cap.line);
    counts.set(key, (counts.get(key) ?? 0) + gpus);
  }
  return counts;
}

function dilutionPpm(entry: CycleEntry, policy: WeightPolicy, idle: IdleGpus): number {
  const cap = idleCapOf(policy, entry.gpu_model, entry.gpu_count);
  const count = cap === null ? 0 : (idle.get(poolKey(entry.gpu_model, cap.line)) ?? 0);
  if (cap === null || count <= cap.cap_gpus) return ONE_PPM;
  return Math.floor((cap.cap_gpus * ONE_PPM) / count);
}

// MERGED validator/weights/points.ts: What an executor is worth over the stored cycles: the mean of its points, by pool (validator reference 8.1). Pure.
/** Rented nodes share one pool, idle ones another. */
export const POOLS = ['mining', 'idle'] as const;
export type Pool = (typeof POOLS)[number];

export type Standing = {
  executorId: string;
  /** Its latest score: whose it is now, and why it is worth what it is. */
  latest: Score;
  /** How many stored cycles ago that was. */
  age: number;
  /** Cycles that count: it was measured in them. */
  measured: number;
  points: Readonly<Record<Pool, bigint>>;
};

/** What is kept of an executor's cycles so far. */
type Tally = { latest: Score; index: number; measured: number; sums: Record<Pool, bigint> };

export type Standings = ReturnType<typeof createStandings>;

/** Takes `count` cycles one after the other, oldest first, and keeps of them what it needs per executor. */
export function createStandings(
  policy: WeightPolicy,
  { count, embedded }: { count: number; embedded: boolean },
) {
  const tallies = new Map<string, Tally>();
  const oldest = count - policy.window_cycles;
  let index = 0;

  return {
    add(cycle: Cycle): void {
      if (index >= oldest) {
        for (const score of scoresOf(cycle, policy, embedded)) addScore(tallies, index, score);
      }
      index += 1;
    },

    /** One for each executor that was measured in any cycle of the window, in the order of their ids. */
    all: (): Standing[] =>
      [...tallies]
        .map(([executorId, tally]) => standingOf(executorId, tally, count))
        .sort((a, b) => (a.executorId < b.executorId ? -1 : 1)),
  };
}

export const poolOf = (score: Score): Pool => (score.entry.rented ? 'mining' : 'idle');

function addScore(tallies: Map<string, Tally>, index: number, score: Score): void {
  const { executor_id: id } = score.entry;
  const { measured, sums } = tallies.get(id) ?? { measured: 0, sums: noPoints() };
  sums[poolOf(score)] += score.points;
  tallies.set(id, { latest: score, index, measured: measured + 1, sums });
}

const noPoints = (): Record<Pool, bigint> => ({ mining: 0n, idle: 0n });

/** Not measured for a while it has its last value once more, then none. */
function standingOf(executorId: string, tally: Tally, count: number): Standing {
  const { latest, index, measured, sums } = tally;
  const age = count - 1 - index;
  const known = { executorId, latest, age, measured };
  if (age > CARRY_CYCLES + 1) return { ...known, points: noPoints() };
  if (age > CARRY_CYCLES) {
    return { ...known, points: { ...noPoints(), [poolOf(latest)]: latest.points } };
  }
  const times = BigInt(measured);
  return { ...known, points: { mining: sums.mining / times, idle: sums.idle / times } };
}
