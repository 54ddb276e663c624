/** A simulated day of a small, busy market with many faults. */
import { createLog } from '#shared/runtime/log.ts';
import { TEMPORARY_FILE } from '#shared/runtime/sqlite.ts';
import {
  DEFAULT_SCENARIO,
  readScenario,
  type Scenario,
} from '../../../validator/simulate/scenarios/scenario.ts';
import {
  runSimulation,
  type SimulationOptions,
  type SimulationResult,
} from '../../../validator/simulate/simulation.ts';
import { DEFAULT_POLICY_FILE, readWeightPolicy } from '../../../validator/weights/weight-policy.ts';

/** Renters rent often, and hosts fail often, so that a day has some of everything. */
export function busyScenario(): Scenario {
  const scenario = readScenario(DEFAULT_SCENARIO);
  return {
    ...scenario,
    demand: {
      ...scenario.demand,
      pause_hours: 2,
      jobs: scenario.demand.jobs.map((job) => ({ ...job, hours: 2 })),
    },
    host_faults: { flap: 60, dies: 20, slow: 10 },
  };
}

export type SmallRun = SimulationResult & { lines: readonly string[] };

/** `database`: by default a temporary file. */
export async function simulateDay(
  seed: number,
  { database = TEMPORARY_FILE, ...change }: Partial<SimulationOptions> = {},
): Promise<SmallRun> {
  const lines: string[] = [];
  const result = await runSimulation({
    scenario: busyScenario(),
    seed,
    providers: 3,
    renters: 3,
    days: 1,
    database,
    log: createLog({ name: 'test', level: 'silent' }),
    weightPolicy: readWeightPolicy(DEFAULT_POLICY_FILE),
    onEvent: (line) => void lines.push(line),
    onDay: () => undefined,
    ...change,
  });
  return { ...result, lines };
}
