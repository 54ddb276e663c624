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

function without(shape: RunShape, key: 'cheats' | 'host_faults' | 'service_faults'): RunShape[] {
  const { scenario } = shape;
  return Object.keys(scenario[key]).map((removed) => {
    const rest = Object.entries(scenario[key]).filter(([each]) => each !== removed);
    return { ...shape, scenario: { ...scenario, [key]: Object.fromEntries(rest) } };
  });
}
