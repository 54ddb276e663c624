/** `npm run simulate`: the marketplace in fast motion. */
import { closeSync, mkdirSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { exitStatusOf } from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { createLog } from '#shared/runtime/log.ts';
import { VERSION } from '#shared/runtime/version.ts';
import type { Invariant } from './invariants/violations.ts';
import { parseSimulateOptions, SIMULATE_HELP, type SimulateOptions } from './options.ts';
import { dayLine } from './report/day-figures.ts';
import { DEFAULT_SCENARIO, readScenario } from './scenarios/scenario.ts';
import { shrinkRun } from './shrink/shrink-run.ts';
import { runSimulation, type SimulationOptions, type SimulationResult } from './simulation.ts';

const FAILED = 1;

async function run(argv: readonly string[]): Promise<number> {
  const options = parseSimulateOptions(argv);
  if (options.help) return print(SIMULATE_HELP);
  if (options.version) return print(`${VERSION}\n`);
  const scenario = readScenario(options.scenario ?? DEFAULT_SCENARIO);
  const events = openEvents(options.out);
  const simulation: SimulationOptions = {
    ...options,
    scenario,
    log: createLog({ name: 'simulate', level: 'silent' }),
    onEvent: events.write,
    onDay: (figures) => print(`${dayLine(figures)}\n`),
  };
  const result = await runSimulation(simulation);
  events.close();
  if (options.out !== undefined) {
    const report = { options, scenario, version: VERSION, ...withLists(result) };
    writeFileSync(join(options.out, 'report.json'), `${JSON.stringify(report, null, 2)}\n`);
  }
  const status = conclude(options, result);
  if (result.violation !== null && options.shrink > 0) {
    await printSmallest(simulation, { ...options, invariant: result.violation.invariant });
  }
  return status;
}

/** Prints the command of the smallest run that fails in the same way, and its scenario unless there is a file for it. */
async function printSmallest(
  run: SimulationOptions,
  { shrink, out, invariant, ...options }: SimulateOptions & { invariant: Invariant },
): Promise<void> {
  const onLine = (line: string) => print(`  ${line}\n`);
  const { scenario, ...size } = await shrinkRun(run, { invariant, maxRuns: shrink, onLine });
  const text = `${JSON.stringify(scenario, null, 2)}\n`;
  if (out === undefined) {
    print(
      `smallest run: ${commandOf({ ...options, ...size, scenario: 'FILE' })}, with this FILE:\n${text}`,
    );
    return;
  }
  const file = join(out, 'smallest-scenario.json');
  writeFileSync(file, text);
  print(`smallest run: ${commandOf({ ...options, ...size, scenario: file })}\n`);
}

/** Maps are written as objects. */
function withLists({ figures, ...result }: SimulationResult) {
  const { refusals, interrupted } = figures;
  return {
    ...result,
    figures: {
      ...figures,
      refusals: Object.fromEntries(refusals),
      interrupted: Object.fromEntries(interrupted),
    },
  };
}

function conclude(options: SimulateOptions, { violation, events, hash }: SimulationResult): number {
  const run = `seed=${options.seed} version=${VERSION} events=${events} hash=${hash}`;
  if (violation === null) return print(`PASSED ${run}\n`);
  const { invariant, what, atMs, trace } = violation;
  print(
    [
      `FAILED ${run}`,
      `  ${invariant}: ${what}`,
      `  at ${naiveUtc(atMs)}, after ${violation.events} events`,
      `  repeat with: ${commandOf(options)}`,
      ...trace.map((line) => `  ${line}`),
      '',
    ].join('\n'),
  );
  return FAILED;
}

type RunCommand = Pick<SimulateOptions, 'providers' | 'renters' | 'days' | 'seed' | 'scenario'>;

function commandOf({ providers, renters, days, seed, scenario }: RunCommand): string {
  const file = scenario === undefined ? '' : ` --scenario ${scenario}`;
  return `npm run simulate -- --providers ${providers} --renters ${renters} --days ${days} --seed ${seed}${file}`;
}

function openEvents(folder: string | undefined): { write(line: string): void; close(): void } {
  if (folder === undefined) return { write: () => undefined, close: () => undefined };
  mkdirSync(folder, { recursive: true });
  const file = openSync(join(folder, 'events.jsonl'), 'w');
  return { write: (line) => void writeSync(file, `${line}\n`), close: () => closeSync(file) };
}

function print(text: string): number {
  process.stdout.write(text);
  return 0;
}

try {
  process.exitCode = await run(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`podwright simulate: ${messageOf(error)}\n`);
  process.exitCode = exitStatusOf(error);
}
