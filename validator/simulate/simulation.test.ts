/** Tests whole simulations of a small market: equal options give equal runs. */
import { expect, it } from 'vitest';
import { createLog } from '#shared/runtime/log.ts';
import { DEFAULT_SCENARIO, readScenario, type Scenario } from './scenarios/scenario.ts';
import { runSimulation } from './simulation.ts';

const TIMEOUT_MS = 120_000;

const scenario: Scenario = {
  ...readScenario(DEFAULT_SCENARIO),
  // More faults than usual, so that a short run has some.
  host_faults: { flap: 60, dies: 20, slow: 10 },
};
const busy: Scenario = { ...scenario, demand: { ...scenario.demand, pause_hours: 2 } };

function run(seed: number, database = ':memory:') {
  const lines: string[] = [];
  return runSimulation({
    scenario: busy,
    seed,
    providers: 3,
    renters: 3,
    days: 1,
    database,
    log: createLog({ name: 'test', level: 'silent' }),
    onEvent: (line) => void lines.push(line),
    onDay: () => undefined,
  }).then((result) => ({ ...result, lines }));
}

it(
  'repeats a run with the same seed, and differs with another',
  async () => {
    const first = await run(7);
    expect(first.violation).toBeNull();
    expect(first.figures.rented).toBeGreaterThan(5);
    expect(first.days[0]?.checks).toBeGreaterThanOrEqual(3);
    expect(first.days[0]?.postings).toBeGreaterThan(0);
    expect(first.lines.some((line) => line.includes('"fault-'))).toBe(true);
    const again = await run(7);
    expect(again.lines).toEqual(first.lines);
    expect(again.hash).toBe(first.hash);
    expect((await run(8)).hash).not.toBe(first.hash);
  },
  TIMEOUT_MS,
);
