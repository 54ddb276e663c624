/** Runs a simulation: creates the actors, lets time pass, checks the invariants, and ends with a phase without faults. */
import type { Log } from '#shared/runtime/log.ts';
import { createFaults, type Faults } from './actors/host-faults.ts';
import { enrolProvider, type Provider, runPrices } from './actors/provider.ts';
import { noFigures, type RenterFigures, runRenter, signUpRenter } from './actors/renter.ts';
import { createServiceFaults } from './actors/service-faults.ts';
import {
  checkBalances,
  checkCharges,
  checkLedger,
  checkRest,
  checkSlots,
} from './invariants/database-invariants.ts';
import type { Violation } from './invariants/violations.ts';
import { checkWeights } from './invariants/weights-replay.ts';
import { type DayFigures, dayFigures } from './report/day-figures.ts';
import type { Scenario } from './scenarios/scenario.ts';
import { finalState } from './world/final-state.ts';
import { createWorld, type World } from './world/world.ts';

export type SimulationOptions = {
  scenario: Scenario;
  seed: number;
  providers: number;
  renters: number;
  days: number;
  /** Address of the central API's database. */
  database: string;
  log: Log;
  /** Receives each event as a line of JSON. */
  onEvent(line: string): void;
  /** Called before the actors begin, by tests that break the market. */
  prepare?(world: World): Promise<void>;
  /** Called after each simulated day. */
  onDay(figures: DayFigures): void;
};

export type SimulationResult = {
  violation: Violation | null;
  events: number;
  /** Identifies the run: equal for equal options, on every database. */
  hash: string;
  days: DayFigures[];
  figures: RenterFigures;
};

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const HOURS = 24;
/** Time without faults and new jobs in which the market must come to rest. */
const LIVENESS_MS = 6 * HOUR_MS;

export async function runSimulation(options: SimulationOptions): Promise<SimulationResult> {
  const world = await createWorld({ ...options, write: options.onEvent });
  try {
    return await runWorld(world, options);
  } finally {
    await world.close();
  }
}

async function runWorld(world: World, options: SimulationOptions): Promise<SimulationResult> {
  const { clock, journal, violations } = world;
  const figures = noFigures();
  const stopping = new AbortController();
  const onError = (error: unknown) => {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    violations.report('errors', `an actor failed: ${text}`, []);
  };
  const services = createServiceFaults(world, onError);
  const faults = createFaults(world, services);
  const startMs = clock.steadyMs();
  const parts: Actors = { options, figures, faults, onError, signal: stopping.signal };
  await clock.complete(options.prepare?.(world) ?? Promise.resolve());
  await clock.complete(beginActors(world, parts));
  services.begin();
  const days: DayFigures[] = [];
  const hasFailed = () => violations.first() !== null;
  for (let day = 1; day <= options.days && !hasFailed(); day += 1) {
    for (let hour = 1; hour <= HOURS && !hasFailed(); hour += 1) {
      await clock.runUntil(startMs + (day - 1) * DAY_MS + hour * HOUR_MS, hasFailed);
      await clock.complete(checkHourly(world));
    }
    await clock.complete(checkDaily(world));
    const ended = await clock.complete(dayFigures(world, { day, figures }));
    days.push(ended);
    options.onDay(ended);
  }
  stopping.abort();
  faults.stop();
  services.stop();
  if (!hasFailed()) await clock.runUntil(clock.steadyMs() + LIVENESS_MS, hasFailed);
  await clock.complete(checkHourly(world));
  await clock.complete(checkAtEnd(world));
  const end = await clock.complete(finalState(world));
  return {
    violation: violations.first(),
    events: journal.count(),
    hash: journal.hash(end),
    days,
    figures,
  };
}

type Actors = {
  options: SimulationOptions;
  figures: RenterFigures;
  faults: Faults;
  onError(error: unknown): void;
  signal: AbortSignal;
};

async function beginActors(world: World, parts: Actors): Promise<void> {
  const { options, figures, faults, onError, signal } = parts;
  const providers: Provider[] = [];
  for (let number = 1; number <= options.providers; number += 1) {
    providers.push(await enrolProvider(world, number));
  }
  const renters = [];
  for (let number = 1; number <= options.renters; number += 1) {
    renters.push(await signUpRenter(world, number));
  }
  const detach = (work: Promise<void>) =>
    void work.catch((error: unknown) => {
      if (!signal.aborted) onError(error);
    });
  for (const provider of providers) {
    detach(runPrices(world, provider));
    faults.begin(provider);
  }
  faults.beginEvents(providers);
  for (const renter of renters) {
    detach(runRenter({ world, renter, figures }, signal));
  }
}

async function checkHourly({ db, violations }: World): Promise<void> {
  await checkBalances(db, violations);
  await checkSlots(db, violations);
}

async function checkDaily({ db, violations }: World): Promise<void> {
  await checkLedger(db, violations);
  await checkCharges(db, violations);
}

async function checkAtEnd({ db, store, validatorHotkey, violations }: World): Promise<void> {
  await checkRest(db, violations);
  await checkCharges(db, violations);
  await checkWeights(store, { hotkey: validatorHotkey, violations });
}
