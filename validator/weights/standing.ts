/** What an executor is worth over the stored cycles: the mean of its points, by pool (validator reference 8.1). Pure. */
import type { CycleSet } from './cycle-set.ts';
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

/** One for each executor that was measured in any stored cycle, in the order of their ids. */
export function standingsOf(set: CycleSet, policy: WeightPolicy): Standing[] {
  const cycles = set.cycles.slice(-policy.window_cycles);
  const scores = new Map<string, { age: number; score: Score }[]>();
  for (const [index, cycle] of cycles.entries()) {
    for (const score of scoresOf(cycle, policy, set.embedded)) {
      const { executor_id: id } = score.entry;
      const history = scores.get(id) ?? [];
      scores.set(id, history);
      history.push({ age: cycles.length - 1 - index, score });
    }
  }
  return [...scores]
    .flatMap(([executorId, history]) => standingOf(executorId, history) ?? [])
    .sort((a, b) => (a.executorId < b.executorId ? -1 : 1));
}

export const poolOf = (score: Score): Pool => (score.entry.rented ? 'mining' : 'idle');

function standingOf(
  executorId: string,
  history: readonly { age: number; score: Score }[],
): Standing | null {
  const last = history.at(-1);
  if (last === undefined) return null;
  const { age, score: latest } = last;
  const known = { executorId, latest, age, measured: history.length };
  if (age > CARRY_CYCLES + 1) return { ...known, points: { mining: 0n, idle: 0n } };
  const counted = age > CARRY_CYCLES ? [latest] : history.map(({ score }) => score);
  const points = { mining: 0n, idle: 0n };
  for (const score of counted) points[poolOf(score)] += score.points;
  const count = BigInt(counted.length);
  return { ...known, points: { mining: points.mining / count, idle: points.idle / count } };
}
