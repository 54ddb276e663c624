/** A simulated marketplace for people: the world of a simulation behind the real HTTP API, with a clock that they control. */
import type { AddressNames, ListenAddress } from '#shared/http/listen.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import { TEMPORARY_FILE } from '#shared/runtime/sqlite.ts';
import type { WeightPolicy } from '../../weights/weight-policy.ts';
import { checkBalances, checkSlots } from '../invariants/database-invariants.ts';
import type { Scenario } from '../scenarios/scenario.ts';
import { beginMarket } from '../simulation.ts';
import { createWorld, type World } from '../world/world.ts';
import { createActiveFaults } from './active-faults.ts';
import { installClock } from './clock.routes.ts';
import { type Control, createControl } from './control.ts';
import { startDriver } from './driver.ts';
import { createLatestEvents } from './latest-events.ts';
import { createListener } from './listener.ts';
import { createPodLogs, type PodLogs } from './pod-logs.ts';

export type LiveMarketOptions = {
  scenario: Scenario;
  seed: number;
  providers: number;
  renters: number;
  weightPolicy: WeightPolicy;
  /** Address of the API, and the options that set it. */
  listen: ListenAddress;
  names: AddressNames;
  /** Folder of the built console. */
  consoleFolder: string;
  /** Log of the central API. */
  log: Log;
};

export type LiveMarket = {
  world: World;
  control: Control;
  /** Rejects with the error that ended the simulation. Resolves after `stop`. */
  ended: Promise<void>;
  stop(): Promise<void>;
};

const HOUR_MS = 3_600_000;
/** Sessions do not expire within the longest advance. */
const SESSION_MS = 3_650 * 86_400_000;

/** Checks balances and GPU slots in one transaction, because requests from outside may arrive at any time. */
async function checkEachHour({ clock, db, violations }: World): Promise<never> {
  for (;;) {
    await clock.sleep(HOUR_MS);
    await db.transaction().execute(async (tx) => {
      await checkBalances(tx, violations);
      await checkSlots(tx, violations);
    });
  }
}

/** Creates the market, and serves its API. The clock is paused. */
export async function startLiveMarket(options: LiveMarketOptions): Promise<LiveMarket> {
  const { scenario, seed, weightPolicy, log } = options;
  const active = createActiveFaults();
  const latest = createLatestEvents();
  const listener = createListener(options.listen, options.names);
  let control: Control | null = null;
  let logs: PodLogs | null = null;
  const presentControl = (): Control => {
    if (control !== null) return control;
    throw new ApiError('upstream_unavailable', 'The simulated market is being created', {
      status: 503,
    });
  };
  const world = await createWorld({
    scenario,
    seed,
    weightPolicy,
    log,
    database: TEMPORARY_FILE,
    write: () => undefined,
    observe(event, atMs) {
      active.record(event, atMs);
      latest.record(event, atMs);
      logs?.record(event);
    },
    edge: {
      ports: {
        log,
        installLocal: (server, clock) => installClock(server, { clock, control: presentControl }),
      },
      options: {
        consoleFolder: options.consoleFolder,
        webhookTargets: 'loopback',
        allowsLoopback: true,
        sessionMs: SESSION_MS,
      },
      attach: ({ server }) => listener.attach(server),
    },
  });
  logs = createPodLogs(world);
  const market = await world.clock.complete(beginMarket(world, options));
  market.detach(checkEachHour(world));
  await listener.open();
  const driver = startDriver({
    clock: world.clock,
    real: systemClock,
    isReachable: world.services.central.isRunning,
    hasFailed: () => world.violations.first() !== null,
  });
  control = createControl({ world, market, driver, active, latest });
  return {
    world,
    control,
    ended: driver.ended,
    async stop() {
      await driver.stop();
      market.stop();
      listener.close();
      await world.close();
    },
  };
}
