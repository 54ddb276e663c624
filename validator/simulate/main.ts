/** `npm run simulate`: the marketplace in fast motion. */
import { closeSync, mkdirSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { exitStatusOf } from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { createLog } from '#shared/runtime/log.ts';
import { VERSION } from '#shared/runtime/version.ts';
import { parseSimulateOptions, SIMULATE_HELP, type SimulateOptions } from './options.ts';
import { dayLine } from './report/day-figures.ts';
import { DEFAULT_SCENARIO, readScenario } from './scenarios/scenario.ts';
import { runSimulation, type SimulationResult } from './simulation.ts';

const FAILED = 1;

async function run(argv: readonly string[]): Promise<number> {
  const options = parseSimulateOptions(argv);
  if (options.help) return print(SIMULATE_HELP);
  if (options.version) return print(`${VERSION}\n`);
  const scenario = readScenario(options.scenario ?? DEFAULT_SCENARIO);
  const events = openEvents(options.out);
  const result = await runSimulation({
    ...options,
    scenario,
    log: createLog({ name: 'simulate', level: 'silent' }),
    onEvent: events.write,
    onDay: (figures) => print(`${dayLine(figures)}\n`),
  });
  events.close();
  if (options.out !== undefined) {
    const report = { options, scenario, version: VERSION, ...withLists(result) };
    writeFileSync(join(options.out, 'report.json'), `${JSON.stringify(report, null, 2)}\n`);
  }
  return conclude(options, result);
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

function commandOf({ providers, renters, days, seed, scenario }: SimulateOptions): string {
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
