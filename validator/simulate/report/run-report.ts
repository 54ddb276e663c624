/** Runs a simulation and makes its report. */
import { basename, extname } from 'node:path';
import { parseIsoTime } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { VERSION } from '#shared/runtime/version.ts';
import { ONE_PPM, type WeightPolicy } from '../../weights/weight-policy.ts';
import type { Violation } from '../invariants/violations.ts';
import { runSimulation, type SimulationOptions, type SimulationResult } from '../simulation.ts';
import type { World } from '../world/world.ts';
import { type Collected, createCollector } from './collector.ts';
import type { DayFigures } from './day-figures.ts';
import { differencesOf } from './differences.ts';
import { REPORT_VERSION, type Report } from './report.ts';
import type { PolicyTerms } from './weight-schemas.ts';

export type ReportedOptions = Pick<
  SimulationOptions,
  'scenario' | 'seed' | 'providers' | 'renters' | 'days' | 'database' | 'weightPolicy'
> &
  Partial<
    Pick<SimulationOptions, 'onEvent' | 'observe' | 'onDay' | 'stopAtMs' | 'isReached' | 'prepare'>
  > & {
    /** Name of the weight policy, for readers. */
    policyName: string;
    /** Called at the end, before the world is closed. */
    inspect?(world: World): Promise<void>;
  };

const HOUR_MS = 3_600_000;

export type ReportedRun = { result: SimulationResult; report: Report };

/** Returns the name of a file without its folder and its ending. */
export const nameOfFile = (path: string): string => basename(path, extname(path));

export async function runWithReport(options: ReportedOptions): Promise<ReportedRun> {
  const { scenario, observe, inspect } = options;
  const startMs = parseIsoTime(scenario.starts_at) ?? 0;
  const collector = createCollector(startMs);
  let collected: Collected | null = null;
  let hours = 0;
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
    async onLastDay(world) {
      collected = await collector.end(world);
    },
    async onEnd(world) {
      hours = (world.clock.steadyMs() - startMs) / HOUR_MS;
      await inspect?.(world);
    },
  });
  if (collected === null) throw new Error('the simulation ended without figures');
  return { result, report: reportOf(options, { ...result, hours }, collected) };
}

function reportOf(
  options: ReportedOptions,
  { violation, events, hash, days, stopped, hours }: SimulationResult & { hours: number },
  { policy, hours: periodHours, ...figures }: Collected,
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
      period_hours: periodHours,
      policy,
      passed: violation === null,
      violation: violation === null ? null : shownOf(violation),
      stopped,
      events,
      hash,
    },
    weight_policy: termsOf(options),
    scenario,
    differences: differencesOf(scenario),
    days: days.map(dayOf),
    ...figures,
  };
}

function termsOf({
  policyName: name,
  weightPolicy,
}: {
  policyName: string;
  weightPolicy: WeightPolicy;
}): PolicyTerms {
  const { pools_ppm: pools, rewards } = weightPolicy;
  return {
    name,
    burn_share: pools.burn / ONE_PPM,
    rented_share: pools.mining / ONE_PPM,
    idle_share: pools.idle / ONE_PPM,
    fee_return: rewards === undefined ? null : rewards.fee_return_ppm / ONE_PPM,
    idle_rate: rewards === undefined ? null : rewards.idle_rate_ppm / ONE_PPM,
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
