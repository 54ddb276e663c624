/** Runs a simulation: creates the actors, lets time pass, checks the invariants, and ends with a phase without faults. */
import type { Log } from '#shared/runtime/log.ts';
import type { WeightPolicy } from '../weights/weight-policy.ts';
import { type Renter, signUpRenter } from './actors/account.ts';
import { createFaultEndings, type FaultEndings } from './actors/fault-endings.ts';
import { createHostFaults, type HostFaults } from './actors/host-faults.ts';
import { createMarketFaults, type MarketFaults } from './actors/market-faults.ts';
import { enrolProvider, type Provider, runPrices } from './actors/provider.ts';
import { noFigures, type RenterFigures, runRenter } from './actors/renter.ts';
import { runSelfRenter, type SelfRenter, signUpSelfRenter } from './actors/self-renter.ts';
import { createServiceFaults } from './actors/service-faults.ts';
import {
  checkBalances,
  checkCharges,
  checkRest,
  checkSlots,
} from './invariants/database-invariants.ts';
import { createLedgerFollower } from './invariants/ledger-follower.ts';
import type { Violation } from './invariants/violations.ts';
import { checkWeights } from './invariants/weights-replay.ts';
import { type DayFigures, dayFigures } from './report/day-figures.ts';
import type { Scenario } from './scenarios/scenario.ts';
import { finalState } from './world/final-state.ts';
import type { JournalEvent } from './world/journal.ts';
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
  /** Receives each event with its time. */
  observe?(event: JournalEvent, atMs: number): void;
  /** Weight policy of the validator. */
  weightPolicy: WeightPolicy;
  /** Called after each simulated hour. */
  onHour?(world: World): Promise<void>;
  /** Called after the last day, before the phase in which the market comes to rest. */
  onLastDay?(world: World): Promise<void>;
  /** Called at the end, before the world is closed. */
  onEnd?(world: World): Promise<void>;
  /** Time at which the run ends early, without the phase in which the market comes to rest. */
  stopAtMs?: number;
  /** Returns true to end the run in the same way after an event. */
  isReached?(world: World): boolean;
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
  /** True if the run ended because `isReached` returned true. */
  stopped: boolean;
  figures: RenterFigures;
};

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const HOURS = 24;
/** Time without faults and new jobs in which the market must come to rest. */
const LIVENESS_MS = 6 * HOUR_MS;

export async function runSimulation(options: SimulationOptions): Promise<SimulationResult> {
  const world = await createWorld({ observe: () => undefined, ...options, write: options.onEvent });
  try {
    return await runWorld(world, options);
  } finally {
    await world.close();
  }
}

async function runWorld(world: World, options: SimulationOptions): Promise<SimulationResult> {
  const { clock, journal, violations } = world;
  const startMs = clock.steadyMs();
  await clock.complete(options.prepare?.(world) ?? Promise.resolve());
  const market = await clock.complete(beginMarket(world, options));
  const { figures } = market;
  const checkNewTransfers = createLedgerFollower();
  const days: DayFigures[] = [];
  const hasFailed = () => violations.first() !== null;
  const stopAtMs = options.stopAtMs ?? Number.POSITIVE_INFINITY;
  const isReached = () => clock.steadyMs() >= stopAtMs || (options.isReached?.(world) ?? false);
  const hasEnded = () => hasFailed() || isReached();
  for (let day = 1; day <= options.days && !hasEnded(); day += 1) {
    for (let hour = 1; hour <= HOURS && !hasEnded(); hour += 1) {
      const hourEndMs = startMs + (day - 1) * DAY_MS + hour * HOUR_MS;
      await clock.runUntil(Math.min(hourEndMs, stopAtMs), hasEnded);
      await clock.complete(checkHourly(world));
      await clock.complete(options.onHour?.(world) ?? Promise.resolve());
    }
    await clock.complete(checkNewTransfers(world.db, violations));
    await clock.complete(checkCharges(world.db, violations));
    const ended = await clock.complete(dayFigures(world, { day, figures }));
    days.push(ended);
    options.onDay(ended);
  }
  await clock.complete(options.onLastDay?.(world) ?? Promise.resolve());
  const stopped = isReached();
  market.stop();
  if (!hasFailed() && !stopped) {
    await clock.runUntil(clock.steadyMs() + LIVENESS_MS, hasFailed);
    await clock.complete(checkHourly(world));
    await clock.complete(checkAtEnd(world));
  }
  await clock.complete(options.onEnd?.(world) ?? Promise.resolve());
  const end = await clock.complete(finalState(world));
  return {
    violation: violations.first(),
    events: journal.count(),
    hash: journal.hash(end),
    days,
    stopped,
    figures,
  };
}

type Size = Pick<SimulationOptions, 'providers' | 'renters'>;

/** The actors of a world and its faults. */
export type Market = {
  figures: RenterFigures;
  /** Performs a fault of a host now, and resolves after its repair. */
  strike: HostFaults['strike'];
  /** Performs an event of a scenario now, whatever its time, and resolves after its repair. */
  perform: MarketFaults['perform'];
  /** Ends a fault before its time, by the number of the event that began it. */
  endFault: FaultEndings['end'];
  /** Reports an error of `work` as a violation, unless the market has stopped. */
  detach(work: Promise<void>): void;
  /** Ends all actors and faults. */
  stop(): void;
};

/** Creates the accounts of providers and renters, and begins their processes and the faults of the scenario. */
export async function beginMarket(world: World, size: Size): Promise<Market> {
  const figures = noFigures();
  const stopping = new AbortController();
  const { signal } = stopping;
  const onError = (error: unknown) => {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    world.violations.report('errors', `an actor failed: ${text}`, []);
  };
  const detach = (work: Promise<void>) =>
    void work.catch((error: unknown) => {
      if (!signal.aborted) onError(error);
    });
  const endings = createFaultEndings(world.clock);
  const services = createServiceFaults({ world, endings }, onError);
  const hostFaults = createHostFaults(world, endings);
  const marketFaults = createMarketFaults({ world, hosts: hostFaults, services }, onError);
  const { providers, selfRenters, renters } = await signUpAll(world, size);
  for (const provider of providers) {
    detach(runPrices(world, provider));
    hostFaults.begin(provider);
  }
  marketFaults.begin(providers);
  for (const selfRenter of selfRenters) detach(runSelfRenter(selfRenter, signal));
  for (const renter of renters) detach(runRenter({ world, renter, figures }, signal));
  services.begin();
  return {
    figures,
    strike: hostFaults.strike,
    perform: marketFaults.perform,
    endFault: endings.end,
    detach,
    stop() {
      stopping.abort();
      marketFaults.stop();
      hostFaults.stop();
      services.stop();
    },
  };
}

async function signUpAll(world: World, options: Size) {
  const providers: Provider[] = [];
  const selfRenters: SelfRenter[] = [];
  for (let number = 1; number <= options.providers; number += 1) {
    const provider = await enrolProvider(world, number);
    providers.push(provider);
    const renter = await signUpSelfRenter(world, provider);
    if (renter !== null) selfRenters.push({ world, provider, renter });
  }
  const renters: Renter[] = [];
  for (let number = 1; number <= options.renters; number += 1) {
    renters.push(await signUpRenter(world, `renter-${number}`));
  }
  return { providers, selfRenters, renters };
}

async function checkHourly({ db, violations }: World): Promise<void> {
  await checkBalances(db, violations);
  await checkSlots(db, violations);
}

async function checkAtEnd({ db, store, validatorHotkey, violations }: World): Promise<void> {
  await checkRest(db, violations);
  await checkCharges(db, violations);
  await checkWeights(store, { hotkey: validatorHotkey, violations });
}
