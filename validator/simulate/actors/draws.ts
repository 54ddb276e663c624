/** Random values of a simulation, from a seeded source. Pure except for the state of the source. */
import type { Random } from '#shared/runtime/random.ts';

const STEPS = 2 ** 32;
const PERMILLE = 1_000;

/** Returns a number in [0, 1). */
export const unit = (random: Random): number => random.int(STEPS) / STEPS;

/** Returns a waiting time of a Poisson process. */
export const exponential = (random: Random, mean: number): number =>
  -Math.log(1 - unit(random)) * mean;

/** Returns a log-normal value with this median and deviation of the logarithm. */
export function logNormal(random: Random, median: number, sigma: number): number {
  const radius = Math.sqrt(-2 * Math.log(1 - unit(random)));
  return median * Math.exp(sigma * radius * Math.cos(2 * Math.PI * unit(random)));
}

/** Returns a value within `permille` of the mean. */
export const around = (random: Random, mean: number, permille: number): number =>
  mean * (1 + ((2 * unit(random) - 1) * permille) / PERMILLE);

export const chance = (random: Random, permille: number): boolean =>
  random.int(PERMILLE) < permille;

/** Chooses an element by its weight. Throws for an empty list. */
export function weighted<T extends { weight: number }>(random: Random, choices: readonly T[]): T {
  const total = choices.reduce((sum, { weight }) => sum + weight, 0);
  let left = unit(random) * total;
  for (const choice of choices) {
    left -= choice.weight;
    if (left < 0) return choice;
  }
  const last = choices.at(-1);
  if (last === undefined) throw new RangeError('there is nothing to choose from');
  return last;
}

/** Chooses a key by its weight. */
export function weightedKey<K extends string>(
  random: Random,
  weights: Readonly<Partial<Record<K, number>>>,
): K {
  const choices = (Object.keys(weights) as K[]).map((key) => ({ key, weight: weights[key] ?? 0 }));
  return weighted(random, choices).key;
}

/** Chooses a key by its share in permille; null for the rest. The shares together are at most 1000. */
export function shareOf<K extends string>(
  random: Random,
  shares: Readonly<Partial<Record<K, number>>>,
): K | null {
  let left = unit(random) * PERMILLE;
  for (const key of Object.keys(shares) as K[]) {
    left -= shares[key] ?? 0;
    if (left < 0) return key;
  }
  return null;
}
