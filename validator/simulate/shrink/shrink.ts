/** Reduces a run that violates an invariant to fewer actors, days and faults that still violate it. */
import type { Scenario } from '../scenarios/scenario.ts';

export type RunShape = { providers: number; renters: number; days: number; scenario: Scenario };

export type ShrinkOptions = {
  /** Returns true if the run violates the same invariant. */
  fails(shape: RunShape): Promise<boolean>;
  /** Maximum number of runs. */
  maxRuns: number;
  /** Called with each smaller run that fails. */
  onSmaller(shape: RunShape, runs: number): void;
};

/** Returns the smallest run that was found within `maxRuns` runs: without any single part it passes, unless the runs ended. */
export async function shrink(failing: RunShape, options: ShrinkOptions): Promise<RunShape> {
  let smallest = failing;
  let runs = 0;
  for (;;) {
    const smaller = await firstFailing(smallest);
    if (smaller === null) return smallest;
    smallest = smaller;
    options.onSmaller(smaller, runs);
  }

  async function firstFailing(shape: RunShape): Promise<RunShape | null> {
    for (const candidate of smallerShapes(shape)) {
      if (runs >= options.maxRuns) return null;
      runs += 1;
      if (await options.fails(candidate)) return candidate;
    }
    return null;
  }
}

/** Returns runs that lack something, those that lack most first. Pure. */
export function smallerShapes(shape: RunShape): RunShape[] {
  const { scenario } = shape;
  return [
    ...fewer(shape, 'days', 1),
    ...fewer(shape, 'renters', 0),
    ...fewer(shape, 'providers', 1),
    ...without(shape, 'cheats'),
    ...without(shape, 'host_faults'),
    ...without(shape, 'service_faults'),
    ...without(shape, 'market_faults'),
    ...withoutSelfRental(shape),
    ...scenario.events.map((_, index) => ({
      ...shape,
      scenario: { ...scenario, events: scenario.events.toSpliced(index, 1) },
    })),
  ];
}

/** The half, three quarters, and one less. */
function fewer(shape: RunShape, key: 'days' | 'renters' | 'providers', least: number): RunShape[] {
  const count = shape[key];
  const counts = new Set([Math.floor(count / 2), Math.floor((3 * count) / 4), count - 1]);
  return [...counts]
    .filter((each) => each >= least && each < count)
    .map((each) => ({ ...shape, [key]: each }));
}

type Rates = 'cheats' | 'host_faults' | 'service_faults' | 'market_faults';

/** Removes all rates, each half of them, and each one. */
function without(shape: RunShape, key: Rates): RunShape[] {
  const { scenario } = shape;
  const rates = Object.entries(scenario[key]);
  const half = Math.ceil(rates.length / 2);
  const parts = [rates, rates.slice(0, half), rates.slice(half), ...rates.map((rate) => [rate])];
  return parts
    .filter(({ length }, index) => length > 0 && (length < rates.length || index === 0))
    .map((removed) => {
      const rest = rates.filter((rate) => !removed.includes(rate));
      return { ...shape, scenario: { ...scenario, [key]: Object.fromEntries(rest) } };
    });
}

function withoutSelfRental(shape: RunShape): RunShape[] {
  const { scenario } = shape;
  const { supply } = scenario;
  if (supply.self_rental_permille === 0) return [];
  return [{ ...shape, scenario: { ...scenario, supply: { ...supply, self_rental_permille: 0 } } }];
}
