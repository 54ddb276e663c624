/** Tests the shrinker over runs that fail for a known reason. */
import { expect, it } from 'vitest';
import { DEFAULT_SCENARIO, readScenario } from '../scenarios/scenario.ts';
import { type RunShape, shrink, smallerShapes } from './shrink.ts';

const given = readScenario(DEFAULT_SCENARIO);
const scenario = {
  ...given,
  supply: { ...given.supply, self_rental_permille: 10 },
  host_faults: { flap: 2, dies: 1 },
  service_faults: { central: 1, registry: 1 },
  market_faults: { clock: 1, leave: 1, region: 1 },
  cheats: { power_cap: 100 },
  events: [
    { kind: 'leave', at_hours: 1, share_permille: 100 },
    { kind: 'clock', at_hours: 2, by_seconds: -60 },
  ],
} satisfies RunShape['scenario'];
const FAILING: RunShape = { providers: 40, renters: 100, days: 9, scenario };

it('finds the parts without which a run passes', async () => {
  let runs = 0;
  const smallest = await shrink(FAILING, {
    maxRuns: 1_000,
    onSmaller: () => undefined,
    fails: async ({ providers, renters, days, scenario: { host_faults: faults, events } }) => {
      runs += 1;
      const hasParts = faults.dies === 1 && events.some(({ kind }) => kind === 'clock');
      return providers >= 3 && renters >= 7 && days >= 2 && hasParts;
    },
  });
  expect(smallest).toEqual({
    providers: 3,
    renters: 7,
    days: 2,
    scenario: {
      ...scenario,
      supply: { ...scenario.supply, self_rental_permille: 0 },
      cheats: {},
      host_faults: { dies: 1 },
      service_faults: {},
      market_faults: {},
      events: [{ kind: 'clock', at_hours: 2, by_seconds: -60 }],
    },
  });
  expect(runs).toBeLessThan(150);
});

it('ends after the given number of runs', async () => {
  let runs = 0;
  const fails = async () => {
    runs += 1;
    return true;
  };
  const smallest = await shrink(FAILING, { fails, maxRuns: 3, onSmaller: () => undefined });
  expect(runs).toBe(3);
  expect(smallest.days).toBe(1);
});

it('removes nothing from a run that has nothing to remove', () => {
  const least = {
    ...scenario,
    supply: { ...scenario.supply, self_rental_permille: 0 },
    host_faults: {},
    service_faults: {},
    market_faults: {},
    cheats: {},
    events: [],
  };
  expect(smallerShapes({ providers: 1, renters: 0, days: 1, scenario: least })).toEqual([]);
});
