/** Tests actors in whole simulations of a small market: faults of every kind, and providers that rent their own hosts. */
import { expect, it } from 'vitest';
import { parseIsoTime } from '#shared/runtime/clock.ts';
import { busyScenario, simulateDay } from '../../../test/fakes/scenes/small-simulation.ts';
import { DEFAULT_POLICY_FILE, readWeightPolicy } from '../../weights/weight-policy.ts';
import { INVARIANTS } from '../invariants/violations.ts';
import { runWithReport } from '../report/run-report.ts';
import {
  HOST_FAULTS,
  MARKET_FAULTS,
  type Scenario,
  SERVICE_FAULTS,
} from '../scenarios/scenario.ts';

/** Mean number of faults of each kind on a day: for each host, and for the whole market. */
const DAILY_PER_HOST = 1;
const DAILY = 5;
const DAYS_PER_MONTH = 30;
const HOUR_MS = 3_600_000;

const often = <K extends string>(kinds: readonly K[], daily: number) =>
  Object.fromEntries(kinds.map((kind) => [kind, daily * DAYS_PER_MONTH])) as Record<K, number>;

const faultyScenario = (): Scenario => ({
  ...busyScenario(),
  host_faults: often(HOST_FAULTS, DAILY_PER_HOST),
  service_faults: often(SERVICE_FAULTS, DAILY),
  market_faults: often(MARKET_FAULTS, DAILY),
});

it('keeps the invariants of the market through faults of every kind', async () => {
  const { violation, lines } = await simulateDay(7, {
    scenario: faultyScenario(),
    providers: 5,
    renters: 4,
  });
  expect(violation === null ? '' : `${INVARIANTS[violation.invariant]}: ${violation.what}`).toBe(
    '',
  );
  for (const kind of [...HOST_FAULTS, ...SERVICE_FAULTS, ...MARKET_FAULTS]) {
    expect(
      lines.filter((line) => line.includes(`"kind":"fault-${kind}"`)),
      kind,
    ).not.toEqual([]);
  }
});

it('lets withdrawn hosts return at the end of their event', async () => {
  const event = { kind: 'leave', at_hours: 3, for_hours: 4, share_permille: 1_000 } as const;
  const quiet = { host_faults: {}, service_faults: {}, market_faults: {}, cheats: {} };
  const scenario = { ...busyScenario(), ...quiet, events: [event] };
  const { violation, lines, days } = await simulateDay(7, { scenario });
  expect(violation).toBeNull();
  const startMs = parseIsoTime(scenario.starts_at) ?? 0;
  const hoursOf = (kind: string) =>
    lines
      .map((line) => JSON.parse(line) as { kind: string; at: number })
      .filter((each) => each.kind === kind)
      .map(({ at }) => (at - startMs) / HOUR_MS);
  expect(hoursOf('fault-leave')).toEqual([3, 3, 3]);
  expect(hoursOf('repair')).toEqual([7, 7, 7]);
  expect(days[0]?.verified).toBe(3);
});

it('lets providers rent their own hosts, and reports what they keep', async () => {
  const scenario = busyScenario();
  const { result, report } = await runWithReport({
    scenario: {
      ...scenario,
      supply: { ...scenario.supply, self_rental_permille: 500 },
      demand: { ...scenario.demand, credit_usd: 20, top_up_usd: 100 },
      host_faults: {},
      service_faults: {},
      market_faults: {},
      cheats: {},
    },
    weightPolicy: readWeightPolicy(DEFAULT_POLICY_FILE),
    policyName: 'default-policy',
    seed: 7,
    providers: 4,
    renters: 0,
    days: 1,
    database: ':memory:',
  });
  expect(result.violation).toBeNull();
  const own = report.weights.filter(({ rents_itself: rentsItself }) => rentsItself);
  const others = report.weights.filter(({ rents_itself: rentsItself }) => !rentsItself);
  expect(own.length).toBeGreaterThan(0);
  expect(others.length).toBeGreaterThan(0);
  for (const { own_rentals_usd: paid, income_usd: income } of own) {
    expect(paid).toBeGreaterThan(0);
    // No other account rents, and the platform keeps a fee.
    expect(income).toBeLessThan(paid);
    expect(income).toBeGreaterThan(0.9 * paid);
  }
  for (const { own_rentals_usd: paid, income_usd: income } of others) {
    expect([paid, income]).toEqual([0, 0]);
  }
  // Rentals of renters alone are counted as demand.
  expect(report.rentals.requested).toBe(0);
});
