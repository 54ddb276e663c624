/** What an executor is worth over the stored cycles: the mean of its points, by pool (validator reference 8.1). Pure. */
import type { Cycle } from './cycle-set.ts';
import { type Score, scoresOf } from './points.ts';
import { CARRY_CYCLES, type WeightPolicy } from './weight-policy.ts';

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
