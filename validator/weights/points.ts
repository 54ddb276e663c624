/**
 * Points of an executor, per cycle and as a mean over the window. Computed from integer factors with one division at
 * the end. Pure.
 */
import type { Cycle, CycleEntry } from './cycle-set.ts';
import { CARRY_CYCLES, idleCapOf, ONE_PPM, rateOf, type WeightPolicy } from './weight-policy.ts';

/** Factors in the order in which they are multiplied. */
export const FACTORS = [
  'unit',
  'uptime',
  'runtime',
  'collateral',
  'incentive',
  'dilution',
  'stability',
  'eligible',
] as const;
export type Factor = (typeof FACTORS)[number];

/** Reasons for which an executor earns nothing. */
export type Obstacle =
  | 'failed'
  | 'simulated'
  | 'unproven'
  | 'unknown_model'
  | 'price'
  | 'bandwidth'
  | 'banned';

export type Score = {
  entry: CycleEntry;
  /** Values in ppm, except `unit` (micro-USD per hour) and `eligible` (0 or 1). */
  factors: Readonly<Record<Factor, number>>;
  obstacles: readonly Obstacle[];
  points: bigint;
};

const ONE = BigInt(ONE_PPM);
/** Number of factors in ppm: all except `unit` and `eligible`. */
const PPM_FACTORS = BigInt(FACTORS.length - 2);

/** Scores of the executors that were measured in the cycle; an executor with a withheld verdict has no score. */
export function scoresOf(cycle: Cycle, policy: WeightPolicy, embedded: boolean): Score[] {
  const idle = idleGpus(cycle, policy);
  return cycle.entries
    .filter(({ verdict }) => verdict !== 'withheld')
    .map((entry) => {
      const obstacles = obstaclesOf(entry, policy, embedded);
      const factors = {
        unit: gpusWithWeight(entry) * rateOf(policy, entry.gpu_model),
        uptime: uptimePpm(entry.uptime_minutes, policy),
        runtime: ONE_PPM + (entry.runtime_proven ? policy.runtime_bonus_ppm : 0),
        collateral: entry.collateral ? ONE_PPM : policy.no_collateral_ppm,
        incentive: ONE_PPM + (entry.chat_linked === true ? (policy.linked_chat_bonus_ppm ?? 0) : 0),
        dilution: entry.rented ? ONE_PPM : dilutionPpm(entry, policy, idle),
        stability: ONE_PPM - entry.failure_ppm,
        eligible: obstacles.length === 0 ? 1 : 0,
      };
      return { entry, factors, obstacles, points: pointsOf(factors) };
    });
}

/** Product of all factors in micro-USD per hour. */
export function pointsOf(factors: Readonly<Record<Factor, number>>): bigint {
  const product = FACTORS.reduce((before, factor) => before * BigInt(factors[factor]), 1n);
  return product / ONE ** PPM_FACTORS;
}

const gpusWithWeight = ({ gpu_count: count, weightless_gpus: weightless = 0 }: CycleEntry) =>
  count - Math.min(count, weightless);

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
    ['unproven', (entry.weightless_gpus ?? 0) > 0 && gpusWithWeight(entry) === 0],
    ['unknown_model', rate === 0],
    ['price', price !== null && BigInt(price) > highest],
    ['bandwidth', bandwidth !== null && bandwidth < policy.min_bandwidth_mbit],
    ['banned', policy.banned_hotkeys.includes(entry.hotkey)],
  ];
  return all.filter(([, applies]) => applies).map(([obstacle]) => obstacle);
}

/**
 * Idle GPUs by model and entry of `idle_caps`. Counts GPUs instead of hosts, so that a provider gains nothing by
 * dividing a host.
 */
type IdleGpus = ReadonlyMap<string, number>;

const poolKey = (model: string, line: number) => `${line} ${model}`;

/**
 * Counts idle GPUs, including those of executors with a withheld verdict: an unknown state must not raise the points of
 * others.
 */
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

/** Rented nodes share the pool `mining`, idle nodes the pool `idle`. */
export const POOLS = ['mining', 'idle'] as const;
export type Pool = (typeof POOLS)[number];

export type MeanPoints = {
  executorId: string;
  /** Latest score, with the present owner and factors. */
  latest: Score;
  /** Age of the latest score in stored cycles. */
  age: number;
  /** Number of cycles in which the executor was measured. */
  measured: number;
  /** Fees that were paid for the executor between its first and its last cycle of the window. */
  feesUusd: bigint;
  /**
   * Pool `idle`: mean micro-USD per hour. Pool `mining`: micro-USD of fees in the window, multiplied by the factors;
   * under a policy without `rewards`, mean micro-USD per hour.
   */
  points: Readonly<Record<Pool, bigint>>;
};

type Points = MeanPoints['points'];

/** Running sums of an executor. */
type Tally = {
  latest: Score;
  index: number;
  measured: number;
  sums: Points;
  feesUusd: bigint;
  /** Largest total of paid fees so far; null before the first. */
  paidUusd: number | null;
};

export type MeanPointsTally = ReturnType<typeof createMeanPoints>;

/** Accumulates `count` cycles one at a time, oldest first. */
export function createMeanPoints(
  policy: WeightPolicy,
  { count, embedded }: { count: number; embedded: boolean },
) {
  const tallies = new Map<string, Tally>();
  const oldest = count - policy.window_cycles;
  let index = 0;

  return {
    add(cycle: Cycle): void {
      if (index >= oldest) {
        for (const score of scoresOf(cycle, policy, embedded)) {
          addScore(tallies, index, score, policy);
        }
      }
      index += 1;
    },

    /** Means of all executors that were measured in the window, in the order of their ids. */
    all: (): MeanPoints[] =>
      [...tallies]
        .map(([executorId, tally]) => meanOf(executorId, tally, count, policy))
        .sort((a, b) => (a.executorId < b.executorId ? -1 : 1)),
  };
}

export const poolOf = (score: Score): Pool => (score.entry.rented ? 'mining' : 'idle');

function addScore(
  tallies: Map<string, Tally>,
  index: number,
  score: Score,
  { rewards }: WeightPolicy,
): void {
  const { executor_id: id, paid_fees_uusd: paid = null } = score.entry;
  const before = tallies.get(id) ?? NO_TALLY;
  const { measured, paidUusd } = before;
  const fees = paid === null || paidUusd === null ? 0 : Math.max(0, paid - paidUusd);
  const earned = rewards === undefined ? pointsByState(score) : pointsWithFees(score, fees);
  tallies.set(id, {
    latest: score,
    index,
    measured: measured + 1,
    sums: {
      mining: before.sums.mining + earned.mining,
      idle: before.sums.idle + earned.idle,
    },
    feesUusd: before.feesUusd + BigInt(fees),
    // A refund lowers the total; what is paid after it counts only above the earlier maximum.
    paidUusd: paid === null ? paidUusd : Math.max(paid, paidUusd ?? 0),
  });
}

/** All points belong to the pool of the executor's present state. */
const pointsByState = (score: Score): Points => ({ ...NO_POINTS, [poolOf(score)]: score.points });

/**
 * An idle executor earns its points; the paid fees earn in either state, because it may have been rented in between.
 */
const pointsWithFees = (score: Score, fees: number): Points => ({
  idle: score.entry.rented ? 0n : score.points,
  mining: pointsOf({ ...score.factors, unit: fees, dilution: ONE_PPM }),
});

const NO_POINTS: Points = { mining: 0n, idle: 0n };
const NO_TALLY = { measured: 0, sums: NO_POINTS, feesUusd: 0n, paidUusd: null };

/**
 * Mean points of an executor. An executor that was not measured for more than CARRY_CYCLES cycles keeps its last value
 * for one cycle, then has no points.
 */
function meanOf(
  executorId: string,
  { latest, index, measured, sums, feesUusd }: Tally,
  count: number,
  { rewards }: WeightPolicy,
): MeanPoints {
  const age = count - 1 - index;
  const known = { executorId, latest, age, measured, feesUusd };
  if (age > CARRY_CYCLES + 1) return { ...known, points: NO_POINTS };
  const isCarried = age > CARRY_CYCLES;
  const times = BigInt(measured);
  if (rewards === undefined) {
    const means = { mining: sums.mining / times, idle: sums.idle / times };
    return { ...known, points: isCarried ? pointsByState(latest) : means };
  }
  const idle = isCarried ? pointsByState(latest).idle : sums.idle / times;
  return { ...known, points: { mining: sums.mining, idle } };
}
