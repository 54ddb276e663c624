/** Controls a simulated marketplace for people: its clock, its faults and its latest events. */
import { ApiError } from '#shared/runtime/errors.ts';
import type { Market } from '../simulation.ts';
import type { World } from '../world/world.ts';
import type { ActiveFault, ActiveFaults } from './active-faults.ts';
import type { BeginFault, ChangeClock } from './clock.schemas.ts';
import type { Driver, DriverState } from './driver.ts';
import type { LatestEvent, LatestEvents } from './latest-events.ts';

export type ControlState = DriverState & {
  nowMs: number;
  startedMs: number;
  /** Number of events since the start. */
  events: number;
  violation: string | null;
  /** See `Driver.jumpMs`. */
  jumpMs: number;
};

export type Control = {
  state(): ControlState;
  /** Throws `conflict` while an advance runs, except for a pause. */
  change(change: ChangeClock): void;
  faults(): readonly ActiveFault[];
  regions(): readonly string[];
  /** Throws `node_not_found`, `bad_request` or `conflict` for a fault that cannot begin. */
  begin(fault: BeginFault): void;
  /** Ends a fault before its time. Throws `not_found` if none that lasts has this number. */
  end(number: number): void;
  events(): readonly LatestEvent[];
};

export type ControlParts = {
  world: World;
  market: Market;
  driver: Driver;
  active: ActiveFaults;
  latest: LatestEvents;
};

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const MINUTES = 60;
const MAX_ACTIVE = 100;

export function createControl({ world, market, driver, active, latest }: ControlParts): Control {
  const { clock, journal, violations, scenario, fleet } = world;
  const startedMs = clock.now();

  /** The journal has the time without jumps of the wall clock. */
  const shown = (steadyMs: number): number => steadyMs + clock.now() - clock.steadyMs();

  function refuseImpossible(fault: BeginFault): void {
    if (active.list().length >= MAX_ACTIVE) {
      throw new ApiError('conflict', `${MAX_ACTIVE} faults last already`, {
        hint: 'End some of them, or advance the clock until they end.',
      });
    }
    if (fault.kind === 'region' && !scenario.supply.regions.includes(fault.region)) {
      throw new ApiError('bad_request', `The scenario has no region ${fault.region}`, {
        hint: `Choose one of ${scenario.supply.regions.join(', ')}.`,
      });
    }
    if (!('executor_id' in fault)) return;
    const { executor_id: executor, kind } = fault;
    if (!fleet.hosts().some(({ id }) => id === executor)) {
      throw new ApiError('node_not_found', `No modelled host has the id ${executor}`, {
        hint: 'Choose a node of GET /operator/fleet that the simulation has created.',
      });
    }
    if (active.list().some((each) => each.executor === executor && each.kind === kind)) {
      throw new ApiError('conflict', `The node has the fault ${kind} already`, {
        hint: 'End the fault, or advance the clock until it ends.',
      });
    }
  }

  function perform(fault: BeginFault): Promise<void> {
    if ('executor_id' in fault) {
      return market.strike(fault.kind, fault.executor_id, fault.lasts_minutes * MINUTE_MS);
    }
    if (fault.kind === 'clock') return market.perform({ ...fault, at_hours: 0 });
    if (fault.kind === 'leave' && fault.lasts_minutes === undefined) {
      return market.perform({ ...fault, at_hours: 0 });
    }
    const { lasts_minutes: minutes = 0, ...event } = fault;
    const timed = { ...event, at_hours: 0, for_hours: minutes / MINUTES };
    return market.perform(timed);
  }

  return {
    state: () => {
      const { targetMs, ...state } = driver.state();
      const violation = violations.first();
      return {
        ...state,
        targetMs: targetMs === null ? null : shown(targetMs),
        nowMs: clock.now(),
        jumpMs: driver.jumpMs(),
        startedMs,
        events: journal.count(),
        violation: violation === null ? null : `${violation.invariant}: ${violation.what}`,
      };
    },
    change(change) {
      if (change.action === 'advance') driver.advance(change.seconds * SECOND_MS);
      else if (change.action === 'run') driver.run(change.speed);
      else driver.pause();
    },
    faults: () =>
      active
        .list()
        .map((each) => ({ ...each, sinceMs: shown(each.sinceMs), untilMs: shown(each.untilMs) })),
    regions: () => scenario.supply.regions,
    begin(fault) {
      refuseImpossible(fault);
      market.detach(perform(fault));
    },
    end(number) {
      if (market.endFault(number)) return;
      throw new ApiError('not_found', `No fault that lasts has the number ${number}`, {
        hint: 'Choose the number of a fault of GET /_local/faults.',
      });
    },
    events: () => latest.list().map((each) => ({ ...each, atMs: shown(each.atMs) })),
  };
}
