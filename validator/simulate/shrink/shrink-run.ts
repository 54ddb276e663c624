/** Repeats a failed run with fewer actors, days and faults, as long as it violates the same invariant. */
import { TEMPORARY_FILE } from '#shared/runtime/sqlite.ts';
import type { Invariant } from '../invariants/violations.ts';
import { runSimulation, type SimulationOptions } from '../simulation.ts';
import { type RunShape, shrink } from './shrink.ts';

export type ShrinkRunOptions = {
  /** Invariant that the failed run violates. */
  invariant: Invariant;
  /** Maximum number of runs. */
  maxRuns: number;
  /** Receives a line for each smaller run. */
  onLine(line: string): void;
};

export function shrinkRun(
  failed: SimulationOptions,
  { invariant, maxRuns, onLine }: ShrinkRunOptions,
): Promise<RunShape> {
  const { providers, renters, days, scenario } = failed;
  return shrink(
    { providers, renters, days, scenario },
    {
      maxRuns,
      async fails(shape) {
        // Each run needs an empty database.
        const quiet = {
          database: TEMPORARY_FILE,
          onEvent: () => undefined,
          onDay: () => undefined,
        };
        const { violation } = await runSimulation({ ...failed, ...shape, ...quiet });
        return violation?.invariant === invariant;
      },
      onSmaller(shape, runs) {
        const { providers: hosts, renters: accounts, days: length } = shape;
        onLine(
          `smaller after ${runs} runs: ${hosts} providers, ${accounts} renters, ${length} days`,
        );
      },
    },
  );
}
