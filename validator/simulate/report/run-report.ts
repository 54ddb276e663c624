/** Runs a simulation and makes its report. */
import { parseIsoTime } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { VERSION } from '#shared/runtime/version.ts';
import type { Violation } from '../invariants/violations.ts';
import { runSimulation, type SimulationOptions, type SimulationResult } from '../simulation.ts';
import type { World } from '../world/world.ts';
import { type Collected, createCollector } from './collector.ts';
import type { DayFigures } from './day-figures.ts';
import { differencesOf } from './differences.ts';
import { REPORT_VERSION, type Report } from './report.ts';

export type ReportedOptions = Pick<
  SimulationOptions,
  'scenario' | 'seed' | 'providers' | 'renters' | 'days' | 'database' | 'weightPolicy'
> &
  Partial<
    Pick<SimulationOptions, 'onEvent' | 'observe' | 'onDay' | 'stopAtMs' | 'isReached' | 'prepare'>
  > & {
    /** Called at the end, before the world is closed. */
    inspect?(world: World): Promise<void>;
  };

export type ReportedRun = { result: SimulationResult; report: Report };

export async function runWithReport(options: ReportedOptions): Promise<ReportedRun> {
  const { scenario, observe, inspect } = options;
  const collector = createCollector(parseIsoTime(scenario.starts_at) ?? 0);
  let collected: Collected | null = null;
  const result = await runSimulation({
    onEvent: () => undefined,
    onDay: () => undefined,
    ...options,
    log: createLog({ name: 'simulate', level: 'silent' }),
    observe(event, atMs) {
      collector.record(event, atMs);
      observe?.(event, atMs);
    },
    onHour: collector.sample,
    async onEnd(world) {
      collected = await collector.end(world);
      await inspect?.(world);
    },
  });
  if (collected === null) throw new Error('the simulation ended without figures');
  return { result, report: reportOf(options, result, collected) };
}

function reportOf(
  options: ReportedOptions,
  { violation, events, hash, days, stopped }: SimulationResult,
  { policy, hours, ...figures }: Collected,
): Report {
  const { scenario, seed, providers, renters } = options;
  return {
    version: REPORT_VERSION,
    program: VERSION,
    run: {
      seed,
      providers,
      renters,
      days: options.days,
      hours,
      policy,
      passed: violation === null,
      violation: violation === null ? null : shownOf(violation),
      stopped,
      events,
      hash,
    },
    scenario,
    differences: differencesOf(scenario),
    days: days.map(dayOf),
    ...figures,
  };
}

const shownOf = ({ invariant, what, trace }: Violation) => ({
  invariant,
  what,
  trace: [...trace],
});

const dayOf = ({ gpusRented, failedStarts, chargedUsd, ...same }: DayFigures) => ({
  ...same,
  gpus_rented: gpusRented,
  failed_starts: failedStarts,
  charged_usd: chargedUsd,
});
